"""Random sentences of all kinds."""

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
    to_pronoun,
)
from grammar.sampling.clauses import add_time, clause
from grammar.sampling.compounds import compound
from grammar.sampling.nominals import (
    PRONOUNS,
    RELATIONS,
    choose,
    definite_nominal,
    demonstrative_nominal,
    possessive_nominal,
    sample_subject,
    singular_indefinite,
)
from grammar.sampling.objects import OF_NEW_THINGS
from grammar.sampling.questions import question
from grammar.sampling.relatives import add_relative
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


def sentence(rng: Random) -> Meaning:
    """Draw the meaning of one sentence."""
    return choose(rng, _KINDS)(rng)


def statement(rng: Random) -> Clause:
    """Draw a statement, sometimes with a relative clause."""
    meaning = clause(rng)
    if rng.random() > 0.25:
        return meaning
    if _can_have_relative(meaning.subject):
        return meaning._replace(subject=add_relative(rng, meaning.subject, meaning))
    is_new = meaning.frame.verb.base in OF_NEW_THINGS
    if _can_have_relative(meaning.object) and not (
        is_new or meaning.negated or meaning.often or meaning.recipient
    ):
        # the time goes to the front, where it cannot be heard as part of the relative clause
        modified = add_relative(rng, meaning.object, meaning)
        fronted = meaning.time is not None
        return meaning._replace(object=modified, place=None, companion=None, fronted=fronted)
    return meaning


def _can_have_relative(thing: Participant | None) -> TypeGuard[Nominal]:
    """Return whether a participant may have a relative clause."""
    if not isinstance(thing, Nominal) or thing.noun in RELATIONS or thing.content:
        return False
    return thing.determiner in ("the", "a")


def report(rng: Random) -> Report:
    """Draw what someone thinks, knows, says or hopes."""
    u = rng.random()
    subject: Participant = choose(rng, PRONOUNS) if u < 0.5 else choose(rng, NAMES)
    if u > 0.75:
        subject = possessive_nominal(rng, choose(rng, _FRIENDS))
    verb, content = _reported_content(rng)
    who = content.subject
    if isinstance(who, Nominal) and who.determiner == "that":
        return report(rng)  # "that that man" is hard to read
    if who == subject:
        content = content._replace(subject=to_pronoun(who))
    return Report(subject, VERB[verb], content)


def _reported_content(rng: Random) -> tuple[str, Clause | State]:
    verb = choose(rng, ("think", "know that", "say", "hope"))
    if verb == "hope":
        return verb, clause(rng, choose(rng, _HOPED))._replace(fronted=False, tense="future")
    if verb == "say" and rng.random() < 0.6:
        return verb, clause(rng)._replace(fronted=False)
    meaning = choose(rng, (feeling, quality, quality, location))(rng)
    return verb, meaning._replace(question="")


def sequel(rng: Random) -> Sequel:
    """Draw "She bought a bicycle and repaired it"."""
    first, second = choose(rng, SEQUELS)
    subject = sample_subject(rng, first.subjects, first.any_subject)
    noun = choose(rng, first.objects)
    is_new = first.verb.base in ("write", "make") or rng.random() < 0.5
    if is_new:
        thing = singular_indefinite(rng, noun)
    else:
        bought = first.verb.base == "buy"
        thing = demonstrative_nominal(rng, noun) if bought else definite_nominal(rng, noun, subject)
    meaning = add_time(rng, Clause(first, subject, thing, tense="past"))
    return Sequel(meaning._replace(fronted=meaning.time is not None), second)


_KINDS: tuple[Callable[[Random], Meaning], ...] = (
    *([statement] * 20 + [question] * 9 + [state] * 5 + [comparison] * 2),
    *([existence] * 3 + [compound] * 6 + [report] * 4 + [sequel] * 3),
)
