"""Random states and existentials."""

from random import Random

from grammar.lexicon.adjectives import (
    ADJECTIVES,
    MOODS,
    PREDICATES,
    Adjective,
    adjective_names,
)
from grammar.lexicon.nouns import NAMES, NOUN, Noun, nouns_of
from grammar.lexicon.phrases import TIMES
from grammar.meaning import Existence, Nominal, Participant, Pronoun, State
from grammar.sampling.nominals import (
    PLURALIZABLE,
    POSSESSABLE,
    PRONOUNS,
    adjectives,
    choose,
    definite_nominal,
    indefinite_nominal,
    is_indefinite,
    numeral_nominal,
    place,
    possessive_nominal,
    sample_subject,
)

PEOPLE = nouns_of("person")
PROFESSIONS = nouns_of("worker")
_DESCRIBED = tuple(noun for noun in PREDICATES if PREDICATES[noun] and "person" not in noun.kinds)
_COMPARED = {
    noun: tuple(word for word in words if word.comparative)
    for noun, words in PREDICATES.items()
    if any(word.comparative for word in words)
}
_RIVALS = tuple(noun for noun in _COMPARED if noun in POSSESSABLE)
_OF_NAMES = tuple(word for word in ADJECTIVES if "person" in word.kinds or "adult" in word.kinds)
_EXCESSIVE = adjective_names("big small long old dirty cold hot expensive heavy tired busy")
_THINGS = nouns_of("thing small lost")
_ANIMALS = nouns_of("animal")
_YESTERDAY = tuple(time for time in TIMES if "past" in time.tenses)[:2]


def state(rng: Random) -> State:
    """Draw how someone or something is, or where."""
    u = rng.random()
    if u < 0.3:
        return feeling(rng)
    if u < 0.65:
        return quality(rng)
    if u < 0.75:
        return profession(rng)
    return location(rng) if u < 0.9 else where(rng)


def feeling(rng: Random, subject: Participant | None = None) -> State:
    """Draw how someone feels."""
    meaning = State(subject or sample_subject(rng, PEOPLE, True), choose(rng, MOODS))
    if rng.random() < 0.25:
        meaning = meaning._replace(past=True, time=choose(rng, _YESTERDAY))
    return _vary(rng, meaning)


def quality(rng: Random) -> State:
    """Draw what something is like."""
    noun = choose(rng, _DESCRIBED)
    subject = definite_nominal(rng, noun)._replace(adjectives=())
    return _vary(rng, State(subject, choose(rng, PREDICATES[noun])))


def _vary(rng: Random, meaning: State) -> State:
    """Negate a state, turn it into a question, or add a degree."""
    u = rng.random()
    if u < 0.18:
        return _negate(meaning)
    if u < 0.34:
        return as_question(meaning)
    word = meaning.predicate
    if u > 0.6 or not isinstance(word, Adjective) or not word.graded:
        return meaning
    return meaning._replace(degree="too" if u < 0.46 and word.english in _EXCESSIVE else "very")


def _negate(meaning: State) -> State:
    return meaning if is_indefinite(meaning.subject) else meaning._replace(negated=True)


def as_question(meaning: State) -> State:
    """Return a state as a yes-no question; "I" becomes "you"."""
    subject = Pronoun("you") if meaning.subject == Pronoun("I") else meaning.subject
    return meaning._replace(subject=subject, question="whether")


def profession(rng: Random) -> State:
    """Draw what someone does for a living."""
    u = rng.random()
    subject: Participant = choose(rng, NAMES)
    if u < 0.4:
        subject = choose(rng, PRONOUNS[:4])
    elif u < 0.8:
        subject = possessive_nominal(rng, choose(rng, nouns_of("kin")))._replace(plural=False)
    return _negate_or_ask(rng, State(subject, choose(rng, PROFESSIONS)))


def location(rng: Random) -> State:
    """Draw where something is."""
    subject, kinds = _subject_and_places(rng)
    return _negate_or_ask(rng, State(subject, place(rng, kinds, subject)))


def _negate_or_ask(rng: Random, meaning: State) -> State:
    u = rng.random()
    if u < 0.2:
        return _negate(meaning)
    return as_question(meaning) if u > 0.8 else meaning


def where(rng: Random) -> State:
    """Draw a question where something is."""
    subject, _ = _subject_and_places(rng)
    return State(subject, None, question="where")


def _subject_and_places(rng: Random) -> tuple[Participant, tuple[str, ...]]:
    u = rng.random()
    if u < 0.5:
        return definite_nominal(rng, choose(rng, _THINGS)), ("surface", "under", "kitchen", "home")
    if u < 0.75:
        return definite_nominal(rng, choose(rng, _ANIMALS)), ("wild", "landmark")
    return sample_subject(rng, PEOPLE, True), ("living", "spot", "outside", "landmark")


def comparison(rng: Random) -> State:
    """Draw who or what is more so than another."""
    if rng.random() < 0.3:
        one, two = rng.sample(NAMES, 2)
        words = [word for word in _OF_NAMES if word.comparative and word.predicate]
        return State(one, choose(rng, words), than=two)
    noun = choose(rng, _RIVALS)
    # "his" and "her" are one word in French, and "my" is a part of "our"
    owners = (choose(rng, ("my", "our")), "your", choose(rng, ("his", "her")), "their")
    mine, yours = rng.sample(owners, 2)
    plural = noun in PLURALIZABLE and rng.random() < 0.25
    word = choose(rng, _COMPARED[noun])
    return State(Nominal(noun, mine, plural), word, than=Nominal(noun, yours, plural))


def existence(rng: Random) -> Existence:
    """Draw what there is somewhere."""
    noun, kinds = _noun_and_places(rng)
    u = rng.random()
    nominal = (
        numeral_nominal(rng, noun) if u < 0.5 and noun.countable else indefinite_nominal(rng, noun)
    )
    meaning = Existence(nominal, place(rng, kinds))
    if u > 0.85:
        plain = Nominal(noun, "", noun.countable, adjectives(rng, noun))
        return meaning._replace(nominal=plain, negated=True)
    if u > 0.7:
        nominal = Nominal(noun, "a") if noun.countable else Nominal(noun, "any")
        return meaning._replace(nominal=nominal, question="whether")
    return meaning


def _noun_and_places(rng: Random) -> tuple[Noun, tuple[str, ...]]:
    u = rng.random()
    if u < 0.35:
        return choose(rng, _THINGS), ("surface", "under", "kitchen")
    if u < 0.45:
        return choose(rng, nouns_of("fruit cake egg bread")), ("table",)
    if u < 0.65:
        return choose(rng, _ANIMALS), ("wild", "landmark")
    if u < 0.75:
        return choose(rng, nouns_of("furniture")), ("living", "desk")
    if u < 0.85:
        return choose(rng, (NOUN["flower"], NOUN["tree"])), ("garden", "landmark")
    return choose(rng, nouns_of("man woman child worker actress")), ("spot", "outside", "work")
