import pytest

from grammar.english.clause import clause

TENSES = [
    ({}, "Paul eats bread", "Paul does not eat bread", "does Paul eat bread"),
    ({"tense": "past"}, "Paul ate bread", "Paul did not eat bread", "did Paul eat bread"),
    ({"tense": "future"}, "Paul will eat bread", "Paul will not eat bread", "will Paul eat bread"),
    (
        {"tense": "progressive"},
        "Paul is eating bread",
        "Paul is not eating bread",
        "is Paul eating bread",
    ),
    (
        {"tense": "going"},
        "Paul is going to eat bread",
        "Paul is not going to eat bread",
        "is Paul going to eat bread",
    ),
    (
        {"tense": "modal", "modal": "can"},
        "Paul can eat bread",
        "Paul cannot eat bread",
        "can Paul eat bread",
    ),
    (
        {"tense": "modal", "modal": "want"},
        "Paul wants to eat bread",
        "Paul does not want to eat bread",
        "does Paul want to eat bread",
    ),
]


@pytest.mark.parametrize(("tense", "said", "denied", "asked"), TENSES)
def test_every_tense_is_rendered_plain_negated_and_as_a_question(m, tense, said, denied, asked):
    forms = [{}, {"negated": True}, {"question": "whether"}]
    for form, expected in zip(forms, (said, denied, asked), strict=True):
        meaning = m.act("eat", m.name("Paul"), m.thing("bread", ""), **tense, **form)
        assert " ".join(word.text for word in clause(meaning)) == expected


def test_do_is_marked_as_part_of_the_negation(m):
    bread = m.thing("bread", "")
    asked = clause(m.act("eat", m.name("Paul"), bread, question="whether"))
    denied = clause(m.act("eat", m.name("Paul"), bread, negated=True))
    assert asked[0].marks == ("whether",)
    assert denied[1].marks == denied[2].marks == ("not",)


def test_a_pronoun_receives_before_the_object_and_others_after(m):
    book, paul = m.thing("book", "a"), m.name("Paul")
    meaning = [
        m.act("give", paul, book, "past", recipient=who) for who in (m.who("she"), m.name("Anna"))
    ]
    said = [" ".join(word.text for word in clause(one)) for one in meaning]
    assert said == ["Paul gave her a book", "Paul gave a book to Anna"]


def test_the_time_may_open_the_sentence(m):
    meaning = m.act("fall", m.who("I"), None, "past", time="last night", fronted=True)
    assert " ".join(word.text for word in clause(meaning)) == "last night , I fell"
