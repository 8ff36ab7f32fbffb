"""Fixed phrases: prepositions, times, frequencies and greetings."""

from typing import NamedTuple

from grammar.lexicon.nouns import Noun, nouns_of

Parts = tuple[tuple[str, str], ...]
Choice = tuple[tuple[Noun, ...], tuple[str, ...]]  # nouns and the prepositions they may have


class Preposition(NamedTuple):
    """A preposition of place; Chinese puts it after the noun."""

    english: tuple[str, ...]
    french: tuple[str, ...]
    chinese: str


class Adverb(NamedTuple):
    """A fixed phrase, as pairs of a word and its alignment numbers."""

    english: Parts
    french: Parts
    chinese: Parts
    tenses: frozenset[str]


class Formula(NamedTuple):
    """A greeting, or what else is said in fixed words, as pairs as in `Adverb`."""

    english: Parts
    french: Parts
    chinese: Parts
    is_question: bool


PREPOSITIONS = {
    "in": Preposition(("in",), ("dans",), "里"),
    "on": Preposition(("on",), ("sur",), "上"),
    "under": Preposition(("under",), ("sous",), "下面"),
    "behind": Preposition(("behind",), ("derrière",), "后面"),
    "in front of": Preposition(("in", "front", "of"), ("devant",), "前面"),
    "next to": Preposition(("next", "to"), ("à", "côté", "de"), "旁边"),
    "near": Preposition(("near",), ("près", "de"), "附近"),
    "at": Preposition(("at",), ("à",), ""),
    "to": Preposition(("to",), ("à",), ""),
}
SURFACES = ("street", "beach")  # in Chinese one is "on" them

# kind of place | nouns | prepositions; a kind may have several rows
_PLACES = """
outside  | garden park street | in
outside  | beach | at
wild     | forest garden park | in
town     | town | in
home     | house | in
living   | house kitchen room | in
desk     | room | in
desk     | school | at
work     | shop restaurant | in
work     | hospital hotel school station market | at
spot     | spot | at
shop     | market | at
shop     | shop | in
seat     | chair bed | on
bed      | bed | on
bed      | room house | in
table    | table | on
surface  | surface mat | on
under    | table bed chair | under
under    | tree | under
landmark | house church tree | near,behind,in front of,next to
landmark | river | near
landmark | door window | near,next to
goal     | spot church | to
water    | river | in
station  | station | at
kitchen  | kitchen | in
restaurant | restaurant | at,in
street   | street | in
garden   | garden park | in
"""

# English | French | Chinese | tenses; "last/1" is the counterpart of all that end in /1
_TIMES = """
yesterday | hier | 昨天 | past
last/1 night/2 | hier/1 soir/2 | 昨晚/12 | past
last/1 week/2 | la/2 semaine/2 dernière/1 | 上个/1 星期/2 | past
last/1 year/2 | l'/2 année/2 dernière/1 | 去年/12 | past long
this/1 morning/2 | ce/1 matin/2 | 今天/1 早上/2 | past
two/1 days/2 ago/3 | il/3 y/3 a/3 deux/1 jours/2 | 两/1 天/2 前/3 | past
on/1 Monday/1 | lundi/1 | 星期一/1 | past future
tomorrow | demain | 明天 | future
tomorrow/1 morning/2 | demain/1 matin/2 | 明天/1 早上/2 | future
tonight | ce soir | 今晚 | future
next/1 week/2 | la/2 semaine/2 prochaine/1 | 下个/1 星期/2 | future
next/1 year/2 | l'/2 année/2 prochaine/1 | 明年/12 | future long
every/1 day/2 | tous/1 les/1 jours/2 | 每天/12 | simple
every/1 morning/2 | tous/1 les/1 matins/2 | 每天/1 早上/2 | simple
every/1 evening/2 | tous/1 les/1 soirs/2 | 每天/1 晚上/2 | simple
in/1 summer/2 | en/1 été/2 | 夏天/12 | simple long
in/1 the/1 morning/2 | le/1 matin/2 | 早上/12 | simple
now | maintenant | 现在 | progressive
today | aujourd'hui | 今天 | modal
"""

_OFTEN = """
often | souvent | 常常 | simple
always | toujours | 总是 | simple
sometimes | parfois | 有时候 | simple
also | aussi | 也 | simple progressive
never | jamais | 从来/1 不/1 | simple
"""

_FORMULAS = """
hello | bonjour | 你好
hi | salut | 嗨
good/1 morning/2 | bonjour/12 | 早上/2 好/1
good/1 evening/2 | bonsoir/12 | 晚上/2 好/1
good/1 night/2 | bonne/1 nuit/2 | 晚安/12
goodbye | au revoir | 再见
see/1 you/1 tomorrow/2 | à/1 demain/2 | 明天/2 见/1
welcome | bienvenue | 欢迎
thank you | merci | 谢谢
thank/1 you/1 very/2 much/2 | merci/1 beaucoup/2 | 非常/2 感谢/1
sorry | pardon | 对不起
yes | oui | 是
no | non | 不
good/1 luck/2 | bonne/1 chance/2 | 祝你/1 好运/2
happy/1 birthday/2 | joyeux/1 anniversaire/2 | 生日/2 快乐/1
I/1 love/2 you/3 | je/1 t'/3 aime/2 | 我/1 爱/2 你/3
how/1 are/2 you/3 | comment/1 vas/2 -tu/3 | 你/3 好/12 吗/12 | ?
"""


def _parts(cell: str) -> Parts:
    """Split "last/1 week/2" into words and alignment numbers; without numbers all are aligned."""
    words = (word.partition("/") for word in cell.split())
    return tuple((word, numbers or "1") for word, _, numbers in words)


def _adverb(row: str) -> Adverb:
    english, french, chinese, tenses = row.split("|")
    return Adverb(_parts(english), _parts(french), _parts(chinese), frozenset(tenses.split()))


def _formula(row: str) -> Formula:
    english, french, chinese, *question = row.split("|")
    return Formula(_parts(english), _parts(french), _parts(chinese), bool(question))


def _places() -> dict[str, list[Choice]]:
    places: dict[str, list[Choice]] = {}
    for row in filter(None, _PLACES.splitlines()):
        kind, nouns, prepositions = (cell.strip() for cell in row.split("|"))
        places.setdefault(kind, []).append((nouns_of(nouns), tuple(prepositions.split(","))))
    return places


PLACES = _places()
TIMES = tuple(_adverb(row) for row in _TIMES.splitlines() if row)
FORMULAS = tuple(_formula(row) for row in _FORMULAS.splitlines() if row)
OFTEN = {row.split()[0]: _adverb(row) for row in _OFTEN.splitlines() if row}
