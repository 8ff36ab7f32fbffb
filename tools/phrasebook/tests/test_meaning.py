import pytest

from grammar.lexicon.nouns import NOUN
from grammar.lexicon.phrases import FORMULAS
from grammar.meaning import (
    Compound,
    Existence,
    Greeting,
    Nominal,
    Pronoun,
    is_feminine,
    is_plural,
    person,
    pronoun_of,
    to_pronoun,
)
from grammar.words import Style

# a meaning, and the sentence that a careful translator would write in each language
SAID = [
    (
        lambda m: m.act("sit", m.thing("cat"), place=m.at("on", m.thing("mat"))),
        "The cat sits on the mat.",
        "Le chat est assis sur le tapis.",
        "猫坐在垫子上。",
    ),
    (
        lambda m: m.act(
            "sleep",
            m.thing("cat", plural=True, adjectives="black"),
            negated=True,
            place=m.at("in", m.thing("garden")),
        ),
        "The black cats do not sleep in the garden.",
        "Les chats noirs ne dorment pas dans le jardin.",
        "黑色的猫不在花园里睡觉。",
    ),
    (
        lambda m: m.act("have", m.who("I"), m.thing("car", "a"), negated=True),
        "I do not have a car.",
        "Je n'ai pas de voiture.",
        "我没有汽车。",
    ),
    (
        lambda m: m.act("eat", m.who("he"), m.thing("bread", "any"), negated=True),
        "He does not eat any bread.",
        "Il ne mange pas de pain.",
        "他不吃面包。",
    ),
    (
        lambda m: m.act("drink", m.name("Anna"), m.thing("water", "some"), "progressive"),
        "Anna is drinking some water.",
        "Anna boit de l'eau.",
        "安娜正在喝一些水。",
    ),
    (
        lambda m: m.act("want", m.who("we"), m.portion("cup", "two", "tea", plural=True)),
        "We want two cups of tea.",
        "Nous voulons deux tasses de thé.",
        "我们想要两杯茶。",
    ),
    (
        lambda m: m.act("like", m.who("I"), m.thing("cheese", ""), negated=True),
        "I do not like cheese.",
        "Je n'aime pas le fromage.",
        "我不喜欢奶酪。",
    ),
    (
        lambda m: m.act("speak", m.thing("sister", "my"), m.thing("Chinese", "")),
        "My sister speaks Chinese.",
        "Ma sœur parle chinois.",
        "我姐姐说中文。",
    ),
    (
        lambda m: m.act("play +", m.name("Marie"), m.thing("piano"), often="often"),
        "Marie often plays the piano.",
        "Marie joue souvent du piano.",
        "玛丽常常弹钢琴。",
    ),
    (
        lambda m: m.act("eat", m.name("Paul"), m.thing("meat", "any"), often="never"),
        "Paul never eats any meat.",
        "Paul ne mange jamais de viande.",
        "保罗从来不吃肉。",
    ),
    (
        lambda m: m.act(
            "buy", m.thing("woman"), m.thing("car", "a", False, "old red"), "past", time="yesterday"
        ),
        "The woman bought an old red car yesterday.",
        "La femme a acheté une vieille voiture rouge hier.",
        "女人昨天买了一辆红色的旧汽车。",
    ),
    (
        lambda m: m.act("see", m.who("I"), m.who("she"), "past"),
        "I saw her.",
        "Je l'ai vue.",
        "我看见了她。",
    ),
    (
        lambda m: m.act("see", m.who("they"), m.who("we"), "past", negated=True),
        "They did not see us.",
        "Ils ne nous ont pas vus.",
        "他们没有看见我们。",
    ),
    (
        lambda m: m.act(
            "go", m.who("she"), None, "past", place=m.at("to", m.thing("market")), time="last week"
        ),
        "She went to the market last week.",
        "Elle est allée au marché la semaine dernière.",
        "她上个星期去了市场。",
    ),
    (
        lambda m: m.act("leave", m.thing("actress", plural=True), None, "past"),
        "The actresses left.",
        "Les actrices sont parties.",
        "女演员们离开了。",
    ),
    (
        lambda m: m.act(
            "give", m.name("Thomas"), m.thing("book", "a"), "future", recipient=m.who("they")
        ),
        "Thomas will give them a book.",
        "Thomas leur donnera un livre.",
        "托马斯会给他们一本书。",
    ),
    (
        lambda m: m.act(
            "show",
            m.thing("girl"),
            m.thing("photo", "this"),
            "past",
            recipient=m.thing("teacher", plural=True),
        ),
        "The girl showed this photo to the teachers.",
        "La fille a montré cette photo aux professeurs.",
        "女孩给老师们看了这张照片。",
    ),
    (
        lambda m: m.act("call", m.who("I"), None, "going", recipient=m.thing("mother", "my")),
        "I am going to call my mother.",
        "Je vais téléphoner à ma mère.",
        "我要给我妈妈打电话。",
    ),
    (
        lambda m: m.act("help", m.who("you"), m.who("I"), "modal", modal="can", question="whether"),
        "Can you help me?",
        "Est-ce que tu peux m'aider\u202f?",
        "你能帮助我吗？",
    ),
    (
        lambda m: m.act(
            "see", m.thing("child"), m.thing("dog"), "modal", modal="can", negated=True
        ),
        "The child cannot see the dog.",
        "L'enfant ne peut pas voir le chien.",
        "孩子不能看见狗。",
    ),
    (
        lambda m: m.act("sleep", m.thing("rabbit", "his"), question="where"),
        "Where does his rabbit sleep?",
        "Où est-ce que son lapin dort\u202f?",
        "他的兔子在哪里睡觉？",
    ),
    (
        lambda m: m.act("live", m.who("she"), question="where"),
        "Where does she live?",
        "Où habite-t-elle\u202f?",
        "她住在哪里？",
    ),
    (
        lambda m: m.act("buy", m.who("you"), m.thing("hat", "this"), "past", question="where"),
        "Where did you buy this hat?",
        "Où as-tu acheté ce chapeau\u202f?",
        "你在哪里买的这顶帽子？",
    ),
    (
        lambda m: m.act("eat", m.thing("bird"), m.who("it"), "progressive", question="what"),
        "What is the bird eating?",
        "Qu'est-ce que l'oiseau mange\u202f?",
        "鸟正在吃什么？",
    ),
    (
        lambda m: m.act(
            "read", m.who("he"), m.thing("letter", "how many", True), "past", question="which"
        ),
        "How many letters did he read?",
        "Combien de lettres a-t-il lues\u202f?",
        "他读了几封信？",
    ),
    (
        lambda m: m.act("cry", m.who("he"), None, "past", question="who"),
        "Who cried?",
        "Qui a pleuré\u202f?",
        "谁哭了？",
    ),
    (
        lambda m: m.act("like", m.who("you"), m.thing("dog", "my"), negated=True, question="why"),
        "Why do you not like my dog?",
        "Pourquoi n'aimes-tu pas mon chien\u202f?",
        "你为什么不喜欢我的狗？",
    ),
    (
        lambda m: m.act("walk", m.thing("child", "every"), None, "progressive"),
        "Every child is walking.",
        "Chaque enfant marche.",
        "每个孩子都正在散步。",
    ),
    (
        lambda m: m.being(m.thing("house", plural=True), "beautiful"),
        "The houses are beautiful.",
        "Les maisons sont belles.",
        "房子很漂亮。",
    ),
    (
        lambda m: m.being(m.thing("shirt", "your"), "white", negated=True),
        "Your shirt is not white.",
        "Ta chemise n'est pas blanche.",
        "你的衬衫不是白色的。",
    ),
    (
        lambda m: m.being(m.who("she"), "student"),
        "She is a student.",
        "Elle est étudiante.",
        "她是学生。",
    ),
    (
        lambda m: m.being(m.who("we"), "tired", past=True, degree="very", time="yesterday"),
        "We were very tired yesterday.",
        "Nous étions très fatigués hier.",
        "我们昨天非常累。",
    ),
    (
        lambda m: m.being(m.thing("key", "my", True), question="where"),
        "Where are my keys?",
        "Où sont mes clés\u202f?",
        "我的钥匙在哪里？",
    ),
    (
        lambda m: m.being(
            m.thing("chair", "this"), "expensive", than=m.thing("table", "", owner="Anna")
        ),
        "This chair is more expensive than Anna's table.",
        "Cette chaise est plus chère que la table d'Anna.",
        "这把椅子比安娜的桌子贵。",
    ),
    (
        lambda m: Existence(
            m.thing("tree", "three", True, "big"), m.at("in front of", m.thing("church"))
        ),
        "There are three big trees in front of the church.",
        "Il y a trois grands arbres devant l'église.",
        "教堂前面有三棵大树。",
    ),
    (
        lambda m: Existence(
            m.thing("orange", "", True), m.at("on", m.thing("table")), negated=True
        ),
        "There are no oranges on the table.",
        "Il n'y a pas d'oranges sur la table.",
        "桌子上没有橙子。",
    ),
    (
        lambda m: m.act(
            "sleep",
            m.thing(
                "man", relative=m.act("sell", m.thing("man"), m.thing("bread", ""), gap="subject")
            ),
            None,
            "progressive",
        ),
        "The man who sells bread is sleeping.",
        "L'homme qui vend du pain dort.",
        "卖面包的男人正在睡觉。",
    ),
    (
        lambda m: m.act(
            "eat",
            m.who("I"),
            m.thing(
                "apple",
                plural=True,
                relative=m.act(
                    "buy", m.name("Julie"), m.thing("apple", plural=True), "past", gap="object"
                ),
            ),
            "past",
        ),
        "I ate the apples that Julie bought.",
        "J'ai mangé les pommes que Julie a achetées.",
        "我吃了朱莉买的苹果。",
    ),
    (
        lambda m: Compound(
            "because",
            m.act("eat", m.thing("girl"), m.thing("soup"), "modal", modal="want", negated=True),
            m.being(m.who("it", NOUN["soup"]), m.adjective("cold", NOUN["soup"]), degree="too"),
        ),
        "The girl does not want to eat the soup because it is too cold.",
        "La fille ne veut pas manger la soupe parce qu'elle est trop froide.",
        "女孩不想喝汤，因为它太凉了。",
    ),
    (
        lambda m: Compound(
            "if",
            m.being(m.who("he"), "busy"),
            m.act("work", m.who("he"), None, "future", place=m.at("at", m.thing("hospital"))),
        ),
        "If he is busy, he will work at the hospital.",
        "S'il est occupé, il travaillera à l'hôpital.",
        "如果他很忙，他会在医院工作。",
    ),
    (
        lambda m: Compound(
            "when",
            m.being(m.thing("brother", "our"), "sad"),
            m.act("listen to", m.who("he"), m.thing("music", "")),
        ),
        "When our brother is sad, he listens to music.",
        "Quand notre frère est triste, il écoute de la musique.",
        "我们哥哥难过的时候，他听音乐。",
    ),
    (
        lambda m: m.report(m.who("I"), "think", m.being(m.thing("car"), "dirty")),
        "I think that the car is dirty.",
        "Je pense que la voiture est sale.",
        "我觉得汽车很脏。",
    ),
    (
        lambda m: m.sequel(m.act("buy", m.who("they"), m.thing("house", "a"), "past"), "sell"),
        "They bought a house and sold it.",
        "Ils ont acheté une maison et l'ont vendue.",
        "他们买了一座房子，然后把它卖了。",
    ),
    (
        lambda m: Greeting(formula("good morning"), m.name("Marie")),
        "Good morning, Marie.",
        "Bonjour, Marie.",
        "早上好，玛丽。",
    ),
    (
        lambda m: Greeting(formula("thank you"), exclaimed=True),
        "Thank you!",
        "Merci\u202f!",
        "谢谢！",
    ),
    (
        lambda m: Greeting(formula("how are you"), m.thing("friend", "my", adjectives="old")),
        "How are you, my old friend?",
        "Comment vas-tu, mon vieil ami\u202f?",
        "你好吗，我的老朋友？",
    ),
    (
        lambda m: m.thing("cat", "the", adjectives="old black"),
        "The old black cat.",
        "Le vieux chat noir.",
        "黑色的老猫。",
    ),
]


def formula(words):
    return next(one for one in FORMULAS if [word for word, _ in one.english] == words.split())


@pytest.mark.parametrize(("build", "english", "french", "chinese"), SAID)
def test_meaning_is_rendered_in_three_languages(m, build, english, french, chinese):
    meaning = build(m)
    assert m.say(meaning, "en") == english
    assert m.say(meaning, "fr") == french
    assert m.say(meaning, "zh") == chinese


def test_message_is_rendered_without_capital_and_final_mark(m):
    meaning = m.act("sleep", m.thing("cat"))
    assert m.say(meaning, "en", Style(capital=False)) == "the cat sleeps."
    assert m.say(meaning, "fr", Style(final_mark=False)) == "Le chat dort"
    assert m.say(meaning, "zh", Style(capital=False, final_mark=False)) == "猫睡觉"
    assert m.say(m.act("sleep", m.who("I")), "en", Style(capital=False)) == "i sleep."


def test_a_pronoun_keeps_the_gender_of_what_it_stands_for(m):
    table, boxes = m.thing("table"), m.thing("box", plural=True)
    assert to_pronoun(table) == Pronoun("it", NOUN["table"])
    assert is_feminine(to_pronoun(table)) and not is_plural(to_pronoun(table))
    assert to_pronoun(boxes).word == "they"
    assert is_feminine(to_pronoun(boxes)) and is_plural(to_pronoun(boxes))
    assert to_pronoun(m.who("I")) == m.who("I")


def test_people_are_he_or_she_and_the_speaker_is_masculine(m):
    assert pronoun_of(m.thing("mother")) == "she"
    assert pronoun_of(m.name("Paul")) == "he"
    assert is_feminine(m.name("Anna")) and not is_feminine(m.who("I"))


def test_verbs_count_five_persons(m):
    subjects = [m.who("I"), m.who("you"), m.name("Paul"), m.who("we"), m.thing("cat", plural=True)]
    assert [person(subject) for subject in subjects] == [0, 1, 2, 3, 4]
    assert isinstance(subjects[-1], Nominal)
