"""English clauses: tenses, do-support, questions and the order of words."""

from typing import NamedTuple

from grammar.english.nominal import nominal, participant, place
from grammar.lexicon.phrases import Parts
from grammar.meaning import Clause, Nominal, Pronoun, person
from grammar.words import Word

BE = ("am", "are", "is", "are", "are")
WAS = ("was", "were", "was", "were", "were")
WANT = {"want": ("want", "wants"), "like": ("like", "likes")}


class Group(NamedTuple):
    """The verbs of a clause: the one that moves in a question, and those that stay."""

    moving: Word | None
    staying: list[Word]


def adverb(parts: Parts, mark: str) -> list[Word]:
    """Say a set phrase; its numbers say which words are counterparts."""
    return [Word(word, tuple(mark + number for number in numbers)) for word, numbers in parts]


def clause(told: Clause, mark: str = "") -> list[Word]:
    """Say a clause; in a relative clause without the word it stands by."""
    moving, staying = _group(told, mark)
    subject = _subject(told, mark)
    inverted = told.question not in ("", "who")
    asking = (f"{mark}whether",) if inverted else ()
    front = [Word(moving.text, moving.marks + asking)] if moving else []
    words = _opening(told, mark) + (front + subject if inverted else subject + front)
    if told.negated:
        words = _denied(words, mark, inverted)
    if told.often:
        words += adverb(told.often.english, f"{mark}often.")
    return words + staying + _complements(told, mark)


def _denied(words: list[Word], mark: str, inverted: bool) -> list[Word]:
    last = words[-1]
    if last.text == "can" and not inverted:
        return [*words[:-1], Word("cannot", (*last.marks, f"{mark}not"))]
    return [*words, Word("not", (f"{mark}not",))]


def _opening(told: Clause, mark: str) -> list[Word]:
    """Say what stands before the subject: the time, or what is asked for."""
    if told.question == "which":
        assert isinstance(told.object, Nominal)
        return nominal(told.object, f"{mark}object.", clause)
    if told.question not in ("", "whether"):
        return [Word(told.question, (f"{mark}asked",))]
    if told.time and told.fronted:
        return [*adverb(told.time.english, f"{mark}time."), Word(",", (f"{mark}comma",))]
    return []


def _subject(told: Clause, mark: str) -> list[Word]:
    if told.question == "who" or told.gap == "subject":
        return []
    return participant(told.subject, f"{mark}subject.", clause)


def _group(told: Clause, mark: str) -> Group:
    """Choose the verbs of a tense, and "do" where English needs it."""
    verb, who = told.frame.verb, person(told.subject)
    action, tense = f"{mark}verb", (f"{mark}tense",)
    base = [Word(verb.base, (action,))]
    if told.tense == "progressive":
        return Group(Word(BE[who], tense), [Word(verb.progressive, (action,))])
    if told.tense == "going":
        return Group(Word(BE[who], tense), [Word("going", tense), Word("to", tense), *base])
    if told.tense == "future":
        return Group(Word("will", tense), base)
    if told.tense == "modal":
        return _modal(told, mark, who, base)
    if told.tense == "past":
        if _needs_do(told):
            return Group(Word("did", (*tense, *_denying(told, mark))), base)
        return Group(None, [Word(verb.past, (action, *tense))])
    return _present((verb.base, verb.third), (action, *tense), told, mark, who)


def _modal(told: Clause, mark: str, who: int, base: list[Word]) -> Group:
    """Say "can", "must", or "want to" with its own present."""
    marks = (f"{mark}modal",)
    if told.modal not in WANT:
        return Group(Word(told.modal, marks), base)
    moving, staying = _present(WANT[told.modal], marks, told, mark, who)
    return Group(moving, [*staying, Word("to", marks), *base])


def _present(
    forms: tuple[str, str], marks: tuple[str, ...], told: Clause, mark: str, who: int
) -> Group:
    third = who == 2
    if _needs_do(told):
        do = Word("does" if third else "do", _denying(told, mark))
        return Group(do, [Word(forms[0], marks)])
    return Group(None, [Word(forms[third], marks)])


def _needs_do(told: Clause) -> bool:
    return told.negated or told.question not in ("", "who")


def _denying(told: Clause, mark: str) -> tuple[str, ...]:
    """Mark "do" as a part of the negation that needs it."""
    return (f"{mark}not",) if told.negated else ()


def _complements(told: Clause, mark: str) -> list[Word]:
    """Say what follows the verb: the object, who receives it, with whom, where and when."""
    words: list[Word] = []
    if told.frame.verb.particle not in ("", "+"):
        words.append(Word(told.frame.verb.particle, (f"{mark}verb",)))
    before = isinstance(told.recipient, Pronoun) and told.frame.objects
    if told.recipient and before:
        words += participant(told.recipient, f"{mark}recipient.", clause, subject=False)
    if told.object and told.question not in ("what", "which") and told.gap != "object":
        words += participant(told.object, f"{mark}object.", clause, subject=False)
    if told.recipient and not before:
        words += _recipient(told, mark)
    if told.companion:
        words.append(Word("with", (f"{mark}with",)))
        words += participant(told.companion, f"{mark}companion.", clause, subject=False)
    if told.place:
        words += place(told.place, f"{mark}place.", clause)
    if told.time and not told.fronted:
        words += adverb(told.time.english, f"{mark}time.")
    return words


def _recipient(told: Clause, mark: str) -> list[Word]:
    assert told.recipient
    said = participant(told.recipient, f"{mark}recipient.", clause, subject=False)
    if told.frame.recipient == "-":
        return said
    return [Word(told.frame.recipient, (f"{mark}recipient.to",)), *said]
