import pytest

from grammar.chinese.sentence import sentence
from grammar.lexicon.nouns import NOUN
from grammar.meaning import Compound, Existence


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({}, "桌子很大。"),
        ({"negated": True}, "桌子不大。"),
        ({"question": "whether"}, "桌子大吗？"),
        ({"degree": "too"}, "桌子太大了。"),
        ({"degree": "very"}, "桌子非常大。"),
    ],
)
def test_an_adjective_needs_a_word_before_it_or_a_reason_not_to(m, form, said):
    assert m.say(m.being(m.thing("table"), "big", **form), "zh") == said


def test_colour_predicate_is_between_shi_and_de(m):
    assert m.say(m.being(m.thing("car"), "red", question="whether"), "zh") == "汽车是红色的吗？"


def test_a_state_has_no_degree_before_when(m):
    tired = m.being(m.name("Marie"), "tired")
    meaning = Compound("when", tired, m.act("sleep", m.who("she")))
    assert m.say(meaning, "zh") == "玛丽累的时候，她睡觉。"


def test_existential_has_a_place(m):
    bed = m.at("under", m.thing("bed", "my"))
    assert m.say(Existence(m.thing("mouse", "two", True), bed), "zh") == "我的床下面有两只老鼠。"
    asked = Existence(m.thing("mouse", "a"), bed, question="whether")
    assert m.say(asked, "zh") == "我的床下面有老鼠吗？"


def test_a_sequel_puts_the_object_before_the_verb(m):
    meaning = m.sequel(m.act("buy", m.who("I"), m.thing("car", "two", True), "past"), "sell")
    words = sentence(meaning)
    assert "".join(word.text for word in words) == "我买了两辆汽车，然后把它们卖了。"
    assert words[-2].marks == ("2.tense",)


def test_people_have_professions_and_are_somewhere(m):
    assert m.say(m.being(m.who("he"), "doctor", negated=True), "zh") == "他不是医生。"
    school = m.at("at", m.thing("school"))
    assert m.say(m.being(m.who("we"), school), "zh") == "我们在学校。"


def test_a_comparison_stands_before_the_adjective(m):
    than = m.thing("coat", "your")
    assert m.say(m.being(m.thing("coat", "my"), "expensive", than=than), "zh") == (
        "我的大衣比你的大衣贵。"
    )
    assert NOUN["coat"].measure == "件"
