from grammar.english.clause import clause
from grammar.english.nominal import nominal, participant, place


def text(words):
    return " ".join(word.text for word in words)


def test_article_depends_on_the_next_sound(m):
    assert text(nominal(m.thing("egg", "a"), "", clause)) == "an egg"
    assert text(nominal(m.thing("egg", "a", adjectives="fresh"), "", clause)) == "a fresh egg"
    assert text(nominal(m.thing("car", "a", adjectives="old"), "", clause)) == "an old car"


def test_this_and_that_have_plurals(m):
    assert text(nominal(m.thing("mouse", "this", True), "", clause)) == "these mice"
    assert text(nominal(m.thing("child", "that", True), "", clause)) == "those children"


def test_an_owner_stands_before_and_takes_an_s(m):
    assert text(nominal(m.thing("cat", owner="Paul"), "", clause)) == "Paul 's cat"


def test_pronouns_have_an_object_form(m):
    forms = [text(participant(m.who(word), "", clause, subject=False)) for word in ("I", "they")]
    assert forms == ["me", "them"]


def test_people_are_who_and_others_that(m):
    boy, dog = m.thing("boy"), m.thing("dog")
    clauses = [m.act("run", who, tense="progressive", gap="subject") for who in (boy, dog)]
    said = [
        text(nominal(who._replace(relative=meaning), "", clause))
        for who, meaning in zip((boy, dog), clauses, strict=True)
    ]
    assert said == ["the boy who is running", "the dog that is running"]


def test_a_place_may_have_a_preposition_of_three_words(m):
    words = place(m.at("in front of", m.thing("door")), "place.", clause)
    assert text(words) == "in front of the door"
    assert [word.marks for word in words[:3]] == [("place.preposition",)] * 3
