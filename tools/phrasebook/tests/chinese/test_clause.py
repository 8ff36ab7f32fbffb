import pytest

from grammar.chinese.clause import clause


def text(meaning):
    return "".join(word.text for word in clause(meaning))


@pytest.mark.parametrize(
    ("tense", "said", "denied"),
    [
        ({}, "保罗读书", "保罗不读书"),
        ({"tense": "past"}, "保罗读了书", "保罗没有读书"),
        ({"tense": "future"}, "保罗会读书", "保罗不会读书"),
        ({"tense": "modal", "modal": "want"}, "保罗想读书", "保罗不想读书"),
        ({"tense": "modal", "modal": "must"}, "保罗必须读书", "保罗不可以读书"),
    ],
)
def test_every_tense_is_rendered_plain_and_negated(m, tense, said, denied):
    book = m.thing("book", "", True)
    assert text(m.act("read", m.name("Paul"), book, **tense)) == said
    assert text(m.act("read", m.name("Paul"), book, negated=True, **tense)) == denied


def test_time_and_place_stand_before_the_verb(m):
    meaning = m.act(
        "eat",
        m.thing("child", plural=True),
        m.thing("cake", "a"),
        "past",
        time="yesterday",
        place=m.at("in", m.thing("kitchen")),
    )
    assert text(meaning) == "孩子们昨天在厨房里吃了一个蛋糕"


def test_progressive_absorbs_the_preposition_of_the_place(m):
    garden = m.at("in", m.thing("garden"))
    meaning = m.act("play", m.thing("dog"), None, "progressive", place=garden)
    assert text(meaning) == "狗正在花园里玩"
    during = next(word for word in clause(meaning) if word.text == "正在")
    assert during.marks == ("tense", "place.preposition")


def test_some_verbs_last_and_some_have_their_place_behind(m):
    hat = m.thing("hat", "a")
    assert text(m.act("wear", m.who("she"), hat, "progressive")) == "她戴着一顶帽子"
    house = m.at("in", m.thing("house", "a", adjectives="big"))
    assert text(m.act("live", m.who("they"), place=house)) == "他们住在一座大房子里"
    assert text(m.act("stay", m.who("we"), None, "future", question="where")) == "我们会待在哪里"
    hotel = m.at("at", m.thing("hotel"))
    assert text(m.act("stay", m.who("we"), None, "past", place=hotel)) == "我们待在宾馆"


def test_an_aspect_divides_a_verb_of_two_halves(m):
    assert text(m.act("dance", m.who("we"), None, "past")) == "我们跳了舞"
    assert text(m.act("dance", m.who("you"), None, "past", question="where")) == "你在哪里跳的舞"
    called = m.act("call", m.who("I"), None, "past", recipient=m.who("she"))
    assert text(called) == "我给她打了电话"


def test_to_have_is_denied_in_one_word(m):
    assert text(m.act("have", m.who("I"), m.thing("dog", "a"), negated=True)) == "我没有狗"


def test_universal_subject_is_followed_by_dou(m):
    meaning = m.act("cry", m.thing("child", "all the", True), None, "past", time="yesterday")
    assert text(meaning) == "所有的孩子昨天都哭了"


def test_companions_and_receivers_stand_before_the_verb(m):
    meaning = m.act("walk", m.who("I"), None, "future", companion=m.thing("dog", "my"))
    assert text(meaning) == "我会跟我的狗一起散步"
    letter = m.thing("letter", "a")
    meaning = m.act("send", m.who("he"), letter, "past", recipient=m.thing("mother", "his"))
    assert text(meaning) == "他给他妈妈寄了一封信"


def test_definite_object_of_give_precedes_the_verb(m):
    girl = m.thing("girl")
    meaning = m.act("give", m.who("I"), m.thing("book"), "past", recipient=girl, negated=True)
    assert text(meaning) == "我没有把书给女孩"
    meaning = m.act("give", m.who("I"), m.thing("umbrella", "my"), "past", recipient=girl)
    assert text(meaning) == "我把我的雨伞给了女孩"
    meaning = m.act("give", m.who("I"), m.thing("book", "three", True), "past", recipient=girl)
    assert text(meaning) == "我给了女孩三本书"


def test_indefinite_article_is_omitted_where_the_time_is_asked_for(m):
    meaning = m.act("buy", m.who("you"), m.thing("car", "a"), "past", question="when")
    assert text(meaning) == "你什么时候买的汽车"


def test_a_question_is_marked_at_the_end_and_answers_do_in_english(m):
    words = clause(m.act("like", m.who("you"), m.thing("tea", ""), question="whether"))
    assert (words[-1].text, words[-1].marks) == ("吗", ("whether",))
