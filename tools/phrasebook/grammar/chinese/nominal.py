"""Chinese noun phrases: measure words, adjectives, possessors and relative clauses."""

from collections.abc import Callable

from grammar.lexicon.adjectives import Adjective
from grammar.lexicon.nouns import Name
from grammar.lexicon.phrases import PREPOSITIONS, SURFACES
from grammar.meaning import Clause, Nominal, Participant, Place, Pronoun
from grammar.words import Word

PRONOUNS = {
    "I": "我",
    "you": "你",
    "he": "他",
    "she": "她",
    "it": "它",
    "we": "我们",
    "they": "他们",
}
OWNERS = {
    "my": "我",
    "your": "你",
    "his": "他",
    "her": "她",
    "our": "我们",
    "their": "他们",
}
# these need a measure word before the noun
COUNTS = {
    "a": "一",
    "two": "两",
    "three": "三",
    "four": "四",
    "five": "五",
    "six": "六",
    "ten": "十",
    "this": "这",
    "that": "那",
    "every": "每",
    "which": "哪",
    "how many": "几",
}
UNMEASURED = {
    ("this", True): "这些",
    ("that", True): "那些",
    ("which", True): "哪些",
    ("many", True): "很多",
    ("all the", True): "所有的",
    ("some", True): "一些",
    ("some", False): "一些",
}
FUSED = {
    ("old", "man"): "老人",
    ("old", "woman"): "老太太",
    ("old", "teacher"): "老教师",
}

ClauseRenderer = Callable[[Clause, str], list[Word]]


def participant(
    who: Participant, mark: str, render_clause: ClauseRenderer, indefinite: bool = True
) -> list[Word]:
    """Render a subject or object."""
    if isinstance(who, Pronoun):
        return [Word(_pronoun(who), (f"{mark}noun",))]
    if isinstance(who, Name):
        return [Word(who.chinese, (f"{mark}noun",))]
    return nominal(who, mark, render_clause, indefinite)


def _pronoun(who: Pronoun) -> str:
    if who.word == "they" and who.noun:
        return {"she": "她们", "it": "它们"}.get(who.noun.pronoun, "他们")
    return PRONOUNS[who.word]


def nominal(
    thing: Nominal, mark: str, render_clause: ClauseRenderer, indefinite: bool = True
) -> list[Word]:
    """Render a noun phrase; "a" is omitted where nothing need exist."""
    words = _relative(thing, mark, render_clause)
    if thing.determiner != "a":
        words += _determiner(thing, mark)
    elif indefinite or thing.content:
        words = _determiner(thing, mark) + words
    if thing.content:
        return [*words, Word(thing.content.chinese, (f"{mark}content",))]
    return words + _described(thing, mark)


def _relative(thing: Nominal, mark: str, render_clause: ClauseRenderer) -> list[Word]:
    if not thing.relative:
        return []
    return [*render_clause(thing.relative, f"{mark}relative."), Word("的", (f"{mark}that",))]


def _determiner(thing: Nominal, mark: str) -> list[Word]:
    name, marks = thing.determiner, (f"{mark}determiner",)
    if isinstance(thing.owner, Name):
        owner = Word(thing.owner.chinese, (f"{mark}owner.noun",))
        return [owner, Word("的", marks)]
    if name in OWNERS:
        own = [Word(OWNERS[name], marks)]
        return own if _close(thing) else [*own, Word("的", marks)]
    if (name, thing.plural) in UNMEASURED:
        return [Word(UNMEASURED[name, thing.plural], marks)]
    if name in COUNTS:
        noun = f"{mark}noun"
        measure = Word(thing.noun.measure, (noun,) if thing.content else (*marks, noun))
        return [Word(COUNTS[name], marks), measure]
    return []


def _close(thing: Nominal) -> bool:
    """Return whether the possessor takes no 的: before kin, or before another 的."""
    if thing.adjectives:
        return any(word.linked for word in thing.adjectives)
    return "kin" in thing.noun.kinds and not thing.plural


def _described(thing: Nominal, mark: str) -> list[Word]:
    """Render adjectives and noun; a monosyllabic adjective is next to the noun."""
    noun = thing.noun.chinese
    marks: tuple[str, ...] = (f"{mark}noun",)
    words = [(word, f"{mark}adjective{i}") for i, word in enumerate(thing.adjectives)]
    if len(words) == 1 and (words[0][0].english, thing.noun.singular) in FUSED:
        noun = FUSED[words[0][0].english, thing.noun.singular]
        marks += (words[0][1],)
        words = []
    if len(words) == 2 and not words[0][0].linked:
        words.reverse()
    adjectives = [
        part for i, (word, own) in enumerate(words) for part in _adjective(word, own, i > 0)
    ]
    return [*adjectives, Word(noun + ("们" if _collective(thing) else ""), marks)]


def _adjective(word: Adjective, mark: str, second: bool) -> list[Word]:
    linked = word.linked and not second
    return [Word(word.chinese, (mark,)), *([Word("的", (mark,))] if linked else [])]


def _collective(thing: Nominal) -> bool:
    """Return whether the noun takes the plural 们: several definite people."""
    known = thing.determiner in ("the", "'s") or thing.determiner in OWNERS
    return thing.plural and known and "person" in thing.noun.kinds


def place(where: Place, mark: str, render_clause: ClauseRenderer) -> list[Word]:
    """Render a place without 在: the noun and its localiser."""
    side = PREPOSITIONS[where.preposition].chinese
    if where.nominal.noun.singular in SURFACES and where.preposition in ("in", "at"):
        side = "上"
    words = nominal(where.nominal, mark, render_clause)
    return [*words, Word(side, (f"{mark}preposition",))] if side else words
