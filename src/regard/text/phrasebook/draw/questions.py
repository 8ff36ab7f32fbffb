"""Questions about who does what, drawn at random."""

from random import Random

from regard.text.phrasebook.draw.clauses import FRAMES, clause
from regard.text.phrasebook.draw.nominals import adjectives, pick
from regard.text.phrasebook.lexicon.frames import ACTIONS
from regard.text.phrasebook.meaning import Clause, Nominal, Pronoun, Question

KINDS: tuple[Question, ...] = (
    *("whether", "whether", "whether", "whether", "whether"),
    *("who", "what", "which", "which", "where", "where", "when", "why", "why"),
)
_ANSWERED = frozenset(
    ["eat", "drink", "read", "write", "buy", "sell", "look", "draw", "make", "wear", "want"]
)
_BY_ANYONE = tuple(frame for frame in FRAMES if frame.by_anyone and frame.verb.base != "sit")
_OF_THINGS = tuple(
    frame
    for frame in ACTIONS
    if frame.verb.base in _ANSWERED and frame.verb.particle != "for" and frame.by_anyone
)
_PLACED = tuple(
    frame for frame in ACTIONS if frame.places and frame.by_anyone and frame.verb.base != "arrive"
)
_COUNTED = tuple(
    frame._replace(objects=tuple(noun for noun in frame.objects if noun.counted))
    for frame in ACTIONS
    if frame.verb.base in {*_ANSWERED, "visit", "sing", "repair", "choose", "see"}
    and any(noun.counted for noun in frame.objects)
    and frame.by_anyone
)


def question(chance: Random) -> Clause:
    """Draw a question."""
    kind = pick(chance, KINDS)
    if kind == "whether":
        return clause(chance)._replace(question=kind, fronted=False)
    if kind == "who":
        told = clause(chance, pick(chance, _BY_ANYONE), Pronoun("he"))
        return told._replace(question=kind, fronted=False, negated=False)
    if kind == "what":
        return _what(chance)
    if kind == "which":
        return _which(chance)
    if kind == "where":
        told = _spoken(chance, clause(chance, pick(chance, _PLACED)))
        return told._replace(question=kind, place=None)
    return _circumstance(chance, kind)


def _spoken(chance: Random, told: Clause) -> Clause:
    """Keep what is asked for simple: no negation, nothing at the front, and not of oneself."""
    subject = Pronoun("you") if told.subject == Pronoun("I") else told.subject
    often = None if told.often and told.often.french[0][0] == "jamais" else told.often
    return told._replace(subject=subject, negated=False, fronted=False, often=often)


def _what(chance: Random) -> Clause:
    told = _spoken(chance, clause(chance, pick(chance, _OF_THINGS)))
    return told._replace(question="what", object=Pronoun("it"))


def _which(chance: Random) -> Clause:
    """Draw "which book" or "how many books"."""
    frame = pick(chance, _COUNTED)
    told = _spoken(chance, clause(chance, frame))
    noun = pick(chance, frame.objects)
    plural = chance.random() < 0.6
    many = plural and chance.random() < 0.6
    words = () if many else adjectives(chance, noun)
    asked = Nominal(noun, "how many" if many else "which", plural, words)
    return told._replace(question="which", object=asked)


def _circumstance(chance: Random, kind: Question) -> Clause:
    """Draw "when" or "why"."""
    told = clause(chance)
    if kind == "why":
        negated = told.negated and told.tense != "modal"
        return _spoken(chance, told)._replace(question=kind, negated=negated)
    while told.tense not in ("past", "future", "going"):
        told = clause(chance)
    return _spoken(chance, told)._replace(question=kind, time=None)
