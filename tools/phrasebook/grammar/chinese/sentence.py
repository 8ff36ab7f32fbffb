"""Chinese sentences: clauses, states, existentials and compounds."""

from grammar.chinese.clause import adverb, clause, every
from grammar.chinese.nominal import nominal, participant, place
from grammar.lexicon.adjectives import Adjective
from grammar.lexicon.nouns import Noun
from grammar.meaning import (
    Clause,
    Compound,
    Existence,
    Greeting,
    Meaning,
    Nominal,
    Place,
    Proposition,
    Report,
    Sequel,
    State,
    final_mark,
    to_pronoun,
)
from grammar.words import WRITTEN, Style, Word, punctuate

FINAL_MARKS = {".": "。", "?": "？", "!": "！"}
REPORTS = {"think": "觉得", "know": "知道", "say": "说", "hope": "希望"}
DEGREES = {"": ("很", ""), "very": ("非常", ""), "too": ("太", "了")}


def sentence(meaning: Meaning, style: Style = WRITTEN) -> list[Word]:
    """Render a meaning as a Chinese sentence."""
    return punctuate(_words(meaning), FINAL_MARKS[final_mark(meaning)], style)


def _words(meaning: Meaning) -> list[Word]:
    if isinstance(meaning, Compound):
        return _compound(meaning)
    if isinstance(meaning, Report):
        return _report(meaning)
    if isinstance(meaning, Sequel):
        return _sequel(meaning)
    if isinstance(meaning, Greeting):
        return _greeting(meaning)
    if isinstance(meaning, Nominal):
        return nominal(meaning, "", clause)
    return proposition(meaning)


def proposition(meaning: Proposition, mark: str = "", plain: bool = False) -> list[Word]:
    """Render a clause, a state or an existence; a plain state has no 很."""
    if isinstance(meaning, Clause):
        return clause(meaning, mark)
    if isinstance(meaning, State):
        return state(meaning, mark, plain)
    return existence(meaning, mark)


def state(meaning: State, mark: str = "", plain: bool = False) -> list[Word]:
    """Render a state: a subject and what it is like, or where it is."""
    words = participant(meaning.subject, f"{mark}subject.", clause)
    if meaning.time:
        words += adverb(meaning.time.chinese, f"{mark}time.")
    words += every(meaning.subject, f"{mark}subject.")
    if meaning.predicate is None:
        return [*words, Word("在", (f"{mark}be",)), Word("哪里", (f"{mark}asked",))]
    words += _predicate(meaning, meaning.predicate, mark, plain)
    return words + _asked(meaning, mark)


def _asked(meaning: State | Existence, mark: str) -> list[Word]:
    return [Word("吗", (f"{mark}whether",))] if meaning.question else []


def _predicate(
    meaning: State, predicate: Adjective | Noun | Place, mark: str, plain: bool
) -> list[Word]:
    be, marks = f"{mark}be", (f"{mark}predicate",)
    no = [Word("不", (f"{mark}not",))] if meaning.negated else []
    if isinstance(predicate, Place):
        at = Word("在", (be, f"{mark}place.preposition"))
        return [*no, at, *place(predicate, f"{mark}place.", clause)]
    if isinstance(predicate, Noun):
        return [*no, Word("是", (be,)), Word(predicate.chinese, marks)]
    if predicate.colour:
        return [*no, Word("是", (be,)), Word(predicate.chinese_predicate, marks), Word("的", marks)]
    return _adjective(meaning, predicate, mark, plain)


def _adjective(meaning: State, adjective: Adjective, mark: str, plain: bool) -> list[Word]:
    """Render an adjective as predicate, with 很 where nothing else precedes it."""
    word = Word(adjective.chinese_predicate, (f"{mark}predicate",))
    if meaning.than is not None:
        than = participant(meaning.than, f"{mark}than.", clause)
        return [Word("比", (f"{mark}than", f"{mark}degree", f"{mark}be")), *than, word]
    if meaning.negated:
        return [Word("不", (f"{mark}not", f"{mark}be")), word]
    if plain or (meaning.question and not meaning.degree):
        return [word]
    before, behind = DEGREES[meaning.degree]
    marks = (f"{mark}degree" if meaning.degree else f"{mark}be",)
    return [Word(before, marks), word, *([Word(behind, marks)] if behind else [])]


def existence(meaning: Existence, mark: str = "") -> list[Word]:
    """Render an existential sentence: "there is ..."."""
    be = f"{mark}be"
    have = Word("没有", (be, f"{mark}not")) if meaning.negated else Word("有", (be,))
    thing = nominal(meaning.nominal, f"{mark}subject.", clause, indefinite=not meaning.question)
    return [*place(meaning.place, f"{mark}place.", clause), have, *thing, *_asked(meaning, mark)]


def _compound(meaning: Compound) -> list[Word]:
    joint, comma = ("joint",), Word("，", ("comma",))
    first = proposition(meaning.first, "1.", plain=meaning.conjunction == "when")
    second = proposition(meaning.second, "2.")
    if meaning.conjunction == "when":
        return [*first, Word("的时候", joint), comma, *second]
    if meaning.conjunction == "if":
        return [Word("如果", joint), *first, comma, *second]
    word = "因为" if meaning.conjunction == "because" else "但是"
    return [*first, comma, Word(word, joint), *second]


def _report(meaning: Report) -> list[Word]:
    verb = Word(REPORTS[meaning.verb.base], ("verb", "tense"))
    return [
        *participant(meaning.subject, "subject.", clause),
        verb,
        *proposition(meaning.content, "2."),
    ]


def _sequel(meaning: Sequel) -> list[Word]:
    """Render two actions with one object, which 把 puts before the second verb."""
    assert meaning.clause.object
    return [
        *clause(meaning.clause),
        Word("，"),
        Word("然后", ("joint",)),
        Word("把", ("2.verb",)),
        *participant(to_pronoun(meaning.clause.object), "2.object.", clause),
        Word(meaning.frame.chinese, ("2.verb",)),
        Word("了", ("2.tense",)),
    ]


def _greeting(meaning: Greeting) -> list[Word]:
    words = adverb(meaning.formula.chinese, "formula.")
    if meaning.addressee is None:
        return words
    return [*words, Word("，", ("comma",)), *participant(meaning.addressee, "addressee.", clause)]
