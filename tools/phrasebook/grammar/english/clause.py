"""English clauses: tenses, do-support, questions and word order."""

from typing import NamedTuple

from grammar.english.nominal import nominal, participant, place
from grammar.lexicon.phrases import Parts
from grammar.meaning import Clause, Nominal, Pronoun, person
from grammar.words import Word

BE = ("am", "are", "is", "are", "are")
WAS = ("was", "were", "was", "were", "were")
WANT = {"want": ("want", "wants"), "like": ("like", "likes")}


class Group(NamedTuple):
    """The verbs of a clause: the one that questions put before the subject, and the others."""

    moving: Word | None
    staying: list[Word]


def adverb(parts: Parts, mark: str) -> list[Word]:
    """Render a fixed phrase; its numbers say which words are aligned."""
    return [Word(word, tuple(mark + number for number in numbers)) for word, numbers in parts]


def clause(meaning: Clause, mark: str = "") -> list[Word]:
    """Render a clause; a relative clause lacks the noun that it modifies."""
    moving, staying = _group(meaning, mark)
    subject = _subject(meaning, mark)
    inverted = meaning.question not in ("", "who")
    asking = (f"{mark}whether",) if inverted else ()
    front = [Word(moving.text, moving.marks + asking)] if moving else []
    words = _opening(meaning, mark) + (front + subject if inverted else subject + front)
    if meaning.negated:
        words = _negate(words, mark, inverted)
    if meaning.often:
        words += adverb(meaning.often.english, f"{mark}often.")
    return words + staying + _complements(meaning, mark)


def _negate(words: list[Word], mark: str, inverted: bool) -> list[Word]:
    last = words[-1]
    if last.text == "can" and not inverted:
        return [*words[:-1], Word("cannot", (*last.marks, f"{mark}not"))]
    return [*words, Word("not", (f"{mark}not",))]


def _opening(meaning: Clause, mark: str) -> list[Word]:
    """Render what precedes the subject: a fronted time, or a question word."""
    if meaning.question == "which":
        assert isinstance(meaning.object, Nominal)
        return nominal(meaning.object, f"{mark}object.", clause)
    if meaning.question not in ("", "whether"):
        return [Word(meaning.question, (f"{mark}asked",))]
    if meaning.time and meaning.fronted:
        return [*adverb(meaning.time.english, f"{mark}time."), Word(",", (f"{mark}comma",))]
    return []


def _subject(meaning: Clause, mark: str) -> list[Word]:
    if meaning.question == "who" or meaning.gap == "subject":
        return []
    return participant(meaning.subject, f"{mark}subject.", clause)


def _group(meaning: Clause, mark: str) -> Group:
    """Return the verbs of a tense, with do-support."""
    verb, who = meaning.frame.verb, person(meaning.subject)
    action, tense = f"{mark}verb", (f"{mark}tense",)
    base = [Word(verb.base, (action,))]
    if meaning.tense == "progressive":
        return Group(Word(BE[who], tense), [Word(verb.progressive, (action,))])
    if meaning.tense == "going":
        return Group(Word(BE[who], tense), [Word("going", tense), Word("to", tense), *base])
    if meaning.tense == "future":
        return Group(Word("will", tense), base)
    if meaning.tense == "modal":
        return _modal(meaning, mark, who, base)
    if meaning.tense == "past":
        if _needs_do(meaning):
            return Group(Word("did", (*tense, *_negation_marks(meaning, mark))), base)
        return Group(None, [Word(verb.past, (action, *tense))])
    return _present((verb.base, verb.third), (action, *tense), meaning, mark, who)


def _modal(meaning: Clause, mark: str, who: int, base: list[Word]) -> Group:
    """Return "can", "must", or a present of "want to" or "like to", with the verb."""
    marks = (f"{mark}modal",)
    if meaning.modal not in WANT:
        return Group(Word(meaning.modal, marks), base)
    moving, staying = _present(WANT[meaning.modal], marks, meaning, mark, who)
    return Group(moving, [*staying, Word("to", marks), *base])


def _present(
    forms: tuple[str, str], marks: tuple[str, ...], meaning: Clause, mark: str, who: int
) -> Group:
    third = who == 2
    if _needs_do(meaning):
        do = Word("does" if third else "do", _negation_marks(meaning, mark))
        return Group(do, [Word(forms[0], marks)])
    return Group(None, [Word(forms[third], marks)])


def _needs_do(meaning: Clause) -> bool:
    return meaning.negated or meaning.question not in ("", "who")


def _negation_marks(meaning: Clause, mark: str) -> tuple[str, ...]:
    """Return the marks of "do" in a negation, of which it is a part."""
    return (f"{mark}not",) if meaning.negated else ()


def _complements(meaning: Clause, mark: str) -> list[Word]:
    """Render what follows the verb: object, recipient, companion, place and time."""
    words: list[Word] = []
    if meaning.frame.verb.particle not in ("", "+"):
        words.append(Word(meaning.frame.verb.particle, (f"{mark}verb",)))
    before = isinstance(meaning.recipient, Pronoun) and meaning.frame.objects
    if meaning.recipient and before:
        words += participant(meaning.recipient, f"{mark}recipient.", clause, subject=False)
    if meaning.object and meaning.question not in ("what", "which") and meaning.gap != "object":
        words += participant(meaning.object, f"{mark}object.", clause, subject=False)
    if meaning.recipient and not before:
        words += _recipient(meaning, mark)
    if meaning.companion:
        words.append(Word("with", (f"{mark}with",)))
        words += participant(meaning.companion, f"{mark}companion.", clause, subject=False)
    if meaning.place:
        words += place(meaning.place, f"{mark}place.", clause)
    if meaning.time and not meaning.fronted:
        words += adverb(meaning.time.english, f"{mark}time.")
    return words


def _recipient(meaning: Clause, mark: str) -> list[Word]:
    assert meaning.recipient
    words = participant(meaning.recipient, f"{mark}recipient.", clause, subject=False)
    if meaning.frame.recipient == "-":
        return words
    return [Word(meaning.frame.recipient, (f"{mark}recipient.to",)), *words]
