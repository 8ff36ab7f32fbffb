"""Relative clauses that tell which one, drawn at random."""

from random import Random

from regard.text.phrasebook.draw.clauses import circumstances, clause
from regard.text.phrasebook.draw.nominals import pick, someone
from regard.text.phrasebook.lexicon.frames import ACTIONS, Frame
from regard.text.phrasebook.lexicon.nouns import NOUNS
from regard.text.phrasebook.lexicon.phrases import OFTEN
from regard.text.phrasebook.lexicon.verbs import verbs_called
from regard.text.phrasebook.meaning import Clause, Nominal, Tense

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
    "buy read write find see make repair wear sing sell open visit know help chase take"
)
_TO = {
    noun: tuple(
        frame
        for frame in ACTIONS
        if noun in frame.objects and frame.verb.base in _TOLD and "transport" not in noun.kinds
    )
    for noun in NOUNS
}


def described(chance: Random, thing: Nominal) -> Nominal:
    """Add a clause that tells which one."""
    active, passive = _BY[thing.noun], _TO[thing.noun]
    if active and (not passive or chance.random() < 0.75):
        return thing._replace(relative=_by_it(chance, thing, pick(chance, active)))
    if passive:
        return thing._replace(relative=_to_it(chance, thing, pick(chance, passive)))
    return thing


def _by_it(chance: Random, thing: Nominal, frame: Frame) -> Clause:
    """Draw "who sells bread"."""
    told = clause(chance, _narrowed(frame), thing, negated=False)
    return _short(told._replace(gap="subject"))


def _to_it(chance: Random, thing: Nominal, frame: Frame) -> Clause:
    """Draw "that Marie bought"."""
    frame = _narrowed(frame)
    subject = someone(chance, frame.subjects, frame.by_anyone)
    when = pick(chance, [tense for tense in _TENSES if tense in frame.tenses])
    told = Clause(frame._replace(places=()), subject, thing, tense=when, gap="object")
    return _short(circumstances(chance, told))


def _short(told: Clause) -> Clause:
    """Leave out what would be heard as part of the main clause."""
    often = None if told.often in (OFTEN["never"], OFTEN["also"]) else told.often
    time = told.time if told.place is None and told.companion is None else None
    return told._replace(fronted=False, often=often, time=time)


def _narrowed(frame: Frame) -> Frame:
    """Keep to what is or was: a wish or a plan tells no one apart."""
    return frame._replace(tenses=frame.tenses & set(_TENSES))
