"""Whole sentences, drawn at random."""

from collections.abc import Callable
from random import Random
from typing import TypeGuard

from grammar.lexicon.frames import ACTIONS, SEQUELS
from grammar.lexicon.nouns import NAMES, nouns_of
from grammar.lexicon.verbs import VERB
from grammar.meaning import (
    Clause,
    Meaning,
    Nominal,
    Participant,
    Report,
    Sequel,
    State,
    again,
)
from grammar.sampling.clauses import clause, dated
from grammar.sampling.joined import joined
from grammar.sampling.nominals import (
    PRONOUNS,
    TIES,
    known,
    owned,
    pick,
    pointed,
    single,
    someone,
)
from grammar.sampling.objects import NEW
from grammar.sampling.questions import question
from grammar.sampling.relatives import described
from grammar.sampling.states import (
    comparison,
    existence,
    feeling,
    location,
    quality,
    state,
)

_FRIENDS = nouns_of("kin mate")
_HOPED = tuple(
    frame._replace(tenses=frozenset({"future"})) for frame in ACTIONS if "future" in frame.tenses
)


def sentence(chance: Random) -> Meaning:
    """Draw the meaning of one sentence."""
    return pick(chance, _KINDS)(chance)


def statement(chance: Random) -> Clause:
    """Draw a statement, sometimes with a relative clause."""
    told = clause(chance)
    if chance.random() > 0.25:
        return told
    if _open(told.subject):
        return told._replace(subject=described(chance, told.subject, told))
    made = told.frame.verb.base in NEW
    if _open(told.object) and not (made or told.negated or told.often or told.recipient):
        # the time goes to the front, where it cannot be heard as part of the relative clause
        shown = described(chance, told.object, told)
        fronted = told.time is not None
        return told._replace(object=shown, place=None, companion=None, fronted=fronted)
    return told


def _open(thing: Participant | None) -> TypeGuard[Nominal]:
    """It may be told apart by a clause."""
    if not isinstance(thing, Nominal) or thing.noun in TIES or thing.content:
        return False
    return thing.determiner in ("the", "a")


def report(chance: Random) -> Report:
    """Draw what someone thinks, knows, says or hopes."""
    luck = chance.random()
    subject: Participant = pick(chance, PRONOUNS) if luck < 0.5 else pick(chance, NAMES)
    if luck > 0.75:
        subject = owned(chance, pick(chance, _FRIENDS))
    verb, content = _reported(chance)
    who = content.subject
    if isinstance(who, Nominal) and who.determiner == "that":
        return report(chance)  # "that that man" is hard to read
    if who == subject:
        content = content._replace(subject=again(who))
    return Report(subject, VERB[verb], content)


def _reported(chance: Random) -> tuple[str, Clause | State]:
    verb = pick(chance, ("think", "know that", "say", "hope"))
    if verb == "hope":
        return verb, clause(chance, pick(chance, _HOPED))._replace(fronted=False, tense="future")
    if verb == "say" and chance.random() < 0.6:
        return verb, clause(chance)._replace(fronted=False)
    told = pick(chance, (feeling, quality, quality, location))(chance)
    return verb, told._replace(question="")


def sequel(chance: Random) -> Sequel:
    """Draw "She bought a bicycle and repaired it"."""
    first, second = pick(chance, SEQUELS)
    subject = someone(chance, first.subjects, first.by_anyone)
    noun = pick(chance, first.objects)
    made = first.verb.base in ("write", "make") or chance.random() < 0.5
    if made:
        drawn = single(chance, noun)
    else:
        bought = first.verb.base == "buy"
        drawn = pointed(chance, noun) if bought else known(chance, noun, subject)
    told = dated(chance, Clause(first, subject, drawn, tense="past"))
    return Sequel(told._replace(fronted=told.time is not None), second)


_KINDS: tuple[Callable[[Random], Meaning], ...] = (
    *([statement] * 20 + [question] * 9 + [state] * 5 + [comparison] * 2),
    *([existence] * 3 + [joined] * 6 + [report] * 4 + [sequel] * 3),
)
