"""Questions about who does what, drawn at random."""

from random import Random

from grammar.lexicon.frames import ACTIONS
from grammar.lexicon.phrases import OFTEN
from grammar.lexicon.verbs import verbs_called
from grammar.meaning import Clause, Nominal, Pronoun, Question
from grammar.sampling.clauses import FRAMES, clause
from grammar.sampling.nominals import adjectives, pick

KINDS: tuple[Question, ...] = (
    *("whether", "whether", "whether", "whether", "whether"),
    *("who", "what", "which", "which", "where", "where", "when", "why", "why"),
)
_ANSWERED = verbs_called("eat drink read write buy sell look make wear want")
_BY_ANYONE = tuple(frame for frame in FRAMES if frame.by_anyone and frame.verb.base != "sit")
_OF_THINGS = tuple(
    frame
    for frame in ACTIONS
    if frame.verb.base in _ANSWERED and frame.verb.particle != "for" and frame.by_anyone
)
_PLACED = tuple(frame for frame in ACTIONS if frame.places and frame.by_anyone)
_COUNTED = tuple(
    frame._replace(objects=tuple(noun for noun in frame.objects if noun.counted))
    for frame in ACTIONS
    if frame.verb.base in {*_ANSWERED, "visit", "sing", "repair", "see"}
    and any(noun.counted for noun in frame.objects)
    and frame.by_anyone
)


def question(chance: Random) -> Clause:
    """Draw a question."""
    kind = pick(chance, KINDS)
    if kind == "whether":
        return _spoken(clause(chance, negated=False))._replace(question=kind)
    if kind == "who":
        told = clause(chance, pick(chance, _BY_ANYONE), Pronoun("he"), negated=False)
        return _spoken(told)._replace(question=kind)
    if kind == "what":
        return _what(chance)
    if kind == "which":
        return _which(chance)
    if kind == "where":
        told = _spoken(clause(chance, pick(chance, _PLACED), negated=False))
        return told._replace(question=kind, place=None)
    return _circumstance(chance, kind)


def _spoken(told: Clause) -> Clause:
    """Keep a question simple: nothing at the front, no "never", and not about oneself."""
    subject = Pronoun("you") if told.subject == Pronoun("I") else told.subject
    often = None if told.often == OFTEN["never"] else told.often
    return told._replace(subject=subject, fronted=False, often=often)


def _what(chance: Random) -> Clause:
    told = _spoken(clause(chance, pick(chance, _OF_THINGS), negated=False))
    return told._replace(question="what", object=Pronoun("it"))


def _which(chance: Random) -> Clause:
    """Draw "which book" or "how many books"."""
    frame = pick(chance, _COUNTED)
    told = _spoken(clause(chance, frame, negated=False))
    noun = pick(chance, frame.objects)
    plural = chance.random() < 0.6
    many = plural and chance.random() < 0.6
    words = () if many else adjectives(chance, noun)
    asked = Nominal(noun, "how many" if many else "which", plural, words)
    return told._replace(question="which", object=asked, often=None)


def _circumstance(chance: Random, kind: Question) -> Clause:
    """Draw "when" or "why"."""
    told = clause(chance, negated=False if kind == "when" else None)
    while kind == "when" and told.tense not in ("past", "future", "going"):
        told = clause(chance, negated=False)
    told = _spoken(told)._replace(question=kind)
    return told._replace(time=None) if kind == "when" else told
