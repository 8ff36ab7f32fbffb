"""Random questions."""

from random import Random

from grammar.lexicon.frames import ACTIONS
from grammar.lexicon.phrases import OFTEN
from grammar.lexicon.verbs import verb_bases
from grammar.meaning import Clause, Nominal, Pronoun, Question
from grammar.sampling.clauses import FRAMES, clause
from grammar.sampling.nominals import adjectives, choose

KINDS: tuple[Question, ...] = (
    *("whether", "whether", "whether", "whether", "whether"),
    *("who", "what", "which", "which", "where", "where", "when", "why", "why"),
)
_ANSWERED = verb_bases("eat drink read write buy sell look make wear want")
_BY_ANYONE = tuple(frame for frame in FRAMES if frame.any_subject and frame.verb.base != "sit")
_OF_THINGS = tuple(
    frame
    for frame in ACTIONS
    if frame.verb.base in _ANSWERED and frame.verb.particle != "for" and frame.any_subject
)
_PLACED = tuple(frame for frame in ACTIONS if frame.places and frame.any_subject)
_COUNTED = tuple(
    frame._replace(objects=tuple(noun for noun in frame.objects if noun.countable))
    for frame in ACTIONS
    if frame.verb.base in {*_ANSWERED, "visit", "sing", "repair", "see"}
    and any(noun.countable for noun in frame.objects)
    and frame.any_subject
)


def question(rng: Random) -> Clause:
    """Draw a question."""
    kind = choose(rng, KINDS)
    if kind == "whether":
        return _simplify(clause(rng, negated=False))._replace(question=kind)
    if kind == "who":
        meaning = clause(rng, choose(rng, _BY_ANYONE), Pronoun("he"), negated=False)
        return _simplify(meaning)._replace(question=kind)
    if kind == "what":
        return _what(rng)
    if kind == "which":
        return _which(rng)
    if kind == "where":
        meaning = _simplify(clause(rng, choose(rng, _PLACED), negated=False))
        return meaning._replace(question=kind, place=None)
    return _circumstance(rng, kind)


def _simplify(meaning: Clause) -> Clause:
    """Simplify a question: no fronted time, no "never", and "you" for "I"."""
    subject = Pronoun("you") if meaning.subject == Pronoun("I") else meaning.subject
    often = None if meaning.often == OFTEN["never"] else meaning.often
    return meaning._replace(subject=subject, fronted=False, often=often)


def _what(rng: Random) -> Clause:
    meaning = _simplify(clause(rng, choose(rng, _OF_THINGS), negated=False))
    return meaning._replace(question="what", object=Pronoun("it"))


def _which(rng: Random) -> Clause:
    """Draw "which book" or "how many books"."""
    frame = choose(rng, _COUNTED)
    meaning = _simplify(clause(rng, frame, negated=False))
    noun = choose(rng, frame.objects)
    plural = rng.random() < 0.6
    many = plural and rng.random() < 0.6
    words = () if many else adjectives(rng, noun)
    nominal = Nominal(noun, "how many" if many else "which", plural, words)
    return meaning._replace(question="which", object=nominal, often=None)


def _circumstance(rng: Random, kind: Question) -> Clause:
    """Draw "when" or "why"."""
    meaning = clause(rng, negated=False if kind == "when" else None)
    while kind == "when" and meaning.tense not in ("past", "future", "going"):
        meaning = clause(rng, negated=False)
    meaning = _simplify(meaning)._replace(question=kind)
    return meaning._replace(time=None) if kind == "when" else meaning
