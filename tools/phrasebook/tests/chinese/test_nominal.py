import pytest

from grammar.chinese.clause import clause
from grammar.chinese.nominal import FUSED, nominal, participant, place
from grammar.lexicon.nouns import NOUN, NOUNS


def text(words):
    return " ".join(word.text for word in words)


@pytest.mark.parametrize(
    ("noun", "determiner", "plural", "adjectives", "said"),
    [
        ("book", "three", True, "", "三 本 书"),
        ("cat", "a", False, "", "一 只 猫"),
        ("car", "two", True, "new", "两 辆 新 汽车"),
        ("table", "this", False, "", "这 张 桌子"),
        ("table", "that", True, "", "那些 桌子"),
        ("dog", "the", True, "", "狗"),
        ("child", "the", True, "", "孩子们"),
        ("child", "four", True, "", "四 个 孩子"),
        ("mother", "my", False, "", "我 妈妈"),
        ("brother", "my", True, "", "我 的 哥哥们"),
        ("friend", "my", False, "", "我 的 朋友"),
        ("cat", "the", False, "little black", "黑色 的 小 猫"),
        ("dress", "a", False, "beautiful red", "一 条 漂亮 的 红色 连衣裙"),
        ("dog", "his", False, "white", "他 白色 的 狗"),
        ("man", "the", False, "old", "老人"),
        ("student", "every", False, "", "每 个 学生"),
        ("hat", "which", False, "", "哪 顶 帽子"),
        ("water", "some", False, "", "一些 水"),
    ],
)
def test_a_noun_is_measured_and_described(m, noun, determiner, plural, adjectives, said):
    assert text(nominal(m.thing(noun, determiner, plural, adjectives), "", clause)) == said


def test_a_cup_is_a_measure_word(m):
    words = nominal(m.portion("cup", "three", "coffee", plural=True), "", clause)
    assert text(words) == "三 杯 咖啡"
    assert [word.marks for word in words] == [("determiner",), ("noun",), ("content",)]


def test_a_measure_word_belongs_to_the_number_and_the_noun(m):
    words = nominal(m.thing("book", "three", True), "", clause)
    assert words[1].marks == ("determiner", "noun")


def test_indefinite_article_is_omitted_where_nothing_need_exist(m):
    assert text(nominal(m.thing("car", "a"), "", clause, indefinite=False)) == "汽车"
    glass = m.portion("glass", "a", "water")
    assert text(nominal(glass, "", clause, indefinite=False)) == "一 杯 水"


def test_relative_clauses_stand_before_the_noun_and_after_one(m):
    meaning = m.act("buy", m.name("Anna"), m.thing("book"), "past", gap="object")
    definite = m.thing("book", relative=meaning)
    assert text(nominal(definite, "", clause)) == "安娜 买 的 书"
    new = m.thing("book", "a", relative=meaning)
    assert text(nominal(new, "", clause)) == "一 本 安娜 买 的 书"


def test_plural_pronoun_depends_on_its_noun(m):
    said = [
        text(participant(m.who("they", NOUN[noun]), "", clause))
        for noun in ("boy", "actress", "table")
    ]
    assert said == ["他们", "她们", "它们"]


def test_a_place_has_a_side_and_one_is_on_a_street(m):
    said = [
        text(place(m.at(preposition, m.thing(noun)), "", clause))
        for preposition, noun in (("in", "garden"), ("in", "street"), ("at", "school"))
    ]
    assert said == ["花园 里", "街 上", "学校"]


def test_every_number_is_followed_by_the_measure_of_its_noun(generated):
    measures = {noun.chinese: noun.measure for noun in NOUNS} | dict.fromkeys(FUSED.values(), "个")
    numbers = set("一两三四五六十这那每哪几")
    seen = 0
    for phrase in generated("zh"):
        words = phrase.target_words
        for i, word in enumerate(words):
            if word not in numbers or words[i + 1] in "杯瓶块天":
                continue
            # the measure word has the counterparts of its noun
            about = {source for source, target in phrase.links if target == i + 1}
            named = {words[target] for source, target in phrase.links if source in about}
            nouns = {one.removesuffix("们") for one in named} & set(measures)
            assert {measures[noun] for noun in nouns} == {words[i + 1]}, phrase.target
            seen += 1
    assert seen > 3000
