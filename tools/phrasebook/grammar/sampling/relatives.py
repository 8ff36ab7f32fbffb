"""Relative clauses that tell which one, drawn at random."""

from random import Random

from grammar.lexicon.frames import ACTIONS, Frame
from grammar.lexicon.nouns import NOUNS
from grammar.lexicon.phrases import OFTEN
from grammar.lexicon.verbs import verbs_called
from grammar.meaning import Clause, Nominal, Tense
from grammar.sampling.clauses import circumstances, clause
from grammar.sampling.nominals import pick, someone

_TENSES: tuple[Tense, ...] = ("progressive", "past", "past", "simple")
_BY = {
    noun: tuple(
        frame
        for frame in ACTIONS
        if noun in frame.subjects and frame.tenses & set(_TENSES) and frame.verb.base != "have"
    )
    for noun in NOUNS
}
_TOLD = verbs_called(
    "buy read write find see make repair sing sell open visit know help chase take"
)
_TO = {
    noun: tuple(
        frame
        for frame in ACTIONS
        if noun in frame.objects and frame.verb.base in _TOLD and "transport" not in noun.kinds
    )
    for noun in NOUNS
}


def described(chance: Random, thing: Nominal, main: Clause) -> Nominal:
    """Add a clause that tells which one; it is dated only if the main clause is not."""
    active, passive = (
        [frame for frame in frames[thing.noun] if frame.verb != main.frame.verb]
        for frames in (_BY, _TO)
    )
    if active and (not passive or chance.random() < 0.75):
        told = _by_it(chance, thing, pick(chance, active))
    elif passive:
        told = _to_it(chance, thing, pick(chance, passive))
    else:
        return thing
    return thing._replace(relative=_short(told, dated=main.time is None))


def _by_it(chance: Random, thing: Nominal, frame: Frame) -> Clause:
    """Draw "who sells bread"."""
    return clause(chance, _narrowed(frame), thing, negated=False)._replace(gap="subject")


def _to_it(chance: Random, thing: Nominal, frame: Frame) -> Clause:
    """Draw "that Marie bought"."""
    frame = _narrowed(frame)
    subject = someone(chance, frame.subjects, frame.by_anyone)
    if isinstance(subject, Nominal) and subject.determiner == "that":
        subject = subject._replace(determiner="this")  # "that that man" is hard to read
    when = pick(chance, [tense for tense in _TENSES if tense in frame.tenses])
    told = Clause(frame._replace(places=()), subject, thing, tense=when, gap="object")
    return circumstances(chance, told)


def _short(told: Clause, dated: bool) -> Clause:
    """Leave out what would be heard as part of the main clause."""
    often = None if told.often in (OFTEN["never"], OFTEN["also"]) else told.often
    short = dated and told.place is None and told.companion is None
    return told._replace(fronted=False, often=often, time=told.time if short else None)


def _narrowed(frame: Frame) -> Frame:
    """Keep to what is or was: a wish or a plan tells no one apart."""
    return frame._replace(tenses=frame.tenses & set(_TENSES))
