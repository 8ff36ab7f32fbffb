"""What is so and what there is, drawn at random."""

from random import Random

from grammar.lexicon.adjectives import (
    ADJECTIVES,
    MOODS,
    PREDICATES,
    Adjective,
    adjectives_called,
)
from grammar.lexicon.nouns import NAMES, NOUN, Noun, nouns_of
from grammar.lexicon.phrases import TIMES
from grammar.meaning import Existence, Nominal, Participant, Pronoun, State
from grammar.sampling.nominals import (
    OWNED,
    PRONOUNS,
    SEVERAL,
    adjectives,
    counted,
    fresh,
    known,
    owned,
    pick,
    place,
    someone,
    vague,
)

PEOPLE = nouns_of("person")
PROFESSIONS = nouns_of("worker")
_DESCRIBED = tuple(noun for noun in PREDICATES if PREDICATES[noun] and "person" not in noun.kinds)
_COMPARED = {
    noun: tuple(word for word in words if word.comparative)
    for noun, words in PREDICATES.items()
    if any(word.comparative for word in words)
}
_RIVALS = tuple(noun for noun in _COMPARED if noun in OWNED)
_OF_NAMES = tuple(word for word in ADJECTIVES if "person" in word.kinds or "adult" in word.kinds)
_EXCESSIVE = adjectives_called("big small long old dirty cold hot expensive heavy tired busy")
_THINGS = nouns_of("thing small lost")
_ANIMALS = nouns_of("animal")
_YESTERDAY = tuple(time for time in TIMES if "past" in time.tenses)[:2]


def state(chance: Random) -> State:
    """Draw how someone or something is, or where."""
    luck = chance.random()
    if luck < 0.3:
        return feeling(chance)
    if luck < 0.65:
        return quality(chance)
    if luck < 0.75:
        return profession(chance)
    return location(chance) if luck < 0.9 else where(chance)


def feeling(chance: Random, subject: Participant | None = None) -> State:
    """Draw how someone feels."""
    told = State(subject or someone(chance, PEOPLE, True), pick(chance, MOODS))
    if chance.random() < 0.25:
        told = told._replace(past=True, time=pick(chance, _YESTERDAY))
    return _turned(chance, told)


def quality(chance: Random) -> State:
    """Draw what something is like."""
    noun = pick(chance, _DESCRIBED)
    subject = known(chance, noun)._replace(adjectives=())
    return _turned(chance, State(subject, pick(chance, PREDICATES[noun])))


def _turned(chance: Random, told: State) -> State:
    """Deny it, ask about it, or say how much."""
    luck = chance.random()
    if luck < 0.18:
        return _denied(told)
    if luck < 0.34:
        return asked(told)
    word = told.predicate
    if luck > 0.6 or not isinstance(word, Adjective) or not word.graded:
        return told
    return told._replace(degree="too" if luck < 0.46 and word.english in _EXCESSIVE else "very")


def _denied(told: State) -> State:
    return told if vague(told.subject) else told._replace(negated=True)


def asked(told: State) -> State:
    """Ask whether it is so; not about oneself."""
    subject = Pronoun("you") if told.subject == Pronoun("I") else told.subject
    return told._replace(subject=subject, question="whether")


def profession(chance: Random) -> State:
    """Draw what someone does for a living."""
    luck = chance.random()
    subject: Participant = pick(chance, NAMES)
    if luck < 0.4:
        subject = pick(chance, PRONOUNS[:4])
    elif luck < 0.8:
        subject = owned(chance, pick(chance, nouns_of("kin")))._replace(plural=False)
    return _denied_or_asked(chance, State(subject, pick(chance, PROFESSIONS)))


def location(chance: Random) -> State:
    """Draw where something is."""
    subject, kinds = _located(chance)
    return _denied_or_asked(chance, State(subject, place(chance, kinds, subject)))


def _denied_or_asked(chance: Random, told: State) -> State:
    luck = chance.random()
    if luck < 0.2:
        return _denied(told)
    return asked(told) if luck > 0.8 else told


def where(chance: Random) -> State:
    """Draw a question where something is."""
    subject, _ = _located(chance)
    return State(subject, None, question="where")


def _located(chance: Random) -> tuple[Participant, tuple[str, ...]]:
    luck = chance.random()
    if luck < 0.5:
        return known(chance, pick(chance, _THINGS)), ("surface", "under", "kitchen", "home")
    if luck < 0.75:
        return known(chance, pick(chance, _ANIMALS)), ("wild", "landmark")
    return someone(chance, PEOPLE, True), ("living", "spot", "outside", "landmark")


def comparison(chance: Random) -> State:
    """Draw who or what is more so than another."""
    if chance.random() < 0.3:
        one, two = chance.sample(NAMES, 2)
        words = [word for word in _OF_NAMES if word.comparative and word.predicate]
        return State(one, pick(chance, words), than=two)
    noun = pick(chance, _RIVALS)
    # "his" and "her" are one word in French, and "my" is a part of "our"
    owners = (pick(chance, ("my", "our")), "your", pick(chance, ("his", "her")), "their")
    mine, yours = chance.sample(owners, 2)
    plural = noun in SEVERAL and chance.random() < 0.25
    word = pick(chance, _COMPARED[noun])
    return State(Nominal(noun, mine, plural), word, than=Nominal(noun, yours, plural))


def existence(chance: Random) -> Existence:
    """Draw what there is somewhere."""
    noun, kinds = _existing(chance)
    luck = chance.random()
    nominal = counted(chance, noun) if luck < 0.5 and noun.counted else fresh(chance, noun)
    told = Existence(nominal, place(chance, kinds))
    if luck > 0.85:
        plain = Nominal(noun, "", noun.counted, adjectives(chance, noun))
        return told._replace(nominal=plain, negated=True)
    if luck > 0.7:
        asked = Nominal(noun, "a") if noun.counted else Nominal(noun, "any")
        return told._replace(nominal=asked, question="whether")
    return told


def _existing(chance: Random) -> tuple[Noun, tuple[str, ...]]:
    luck = chance.random()
    if luck < 0.35:
        return pick(chance, _THINGS), ("surface", "under", "kitchen")
    if luck < 0.45:
        return pick(chance, nouns_of("fruit cake egg bread")), ("table",)
    if luck < 0.65:
        return pick(chance, _ANIMALS), ("wild", "landmark")
    if luck < 0.75:
        return pick(chance, nouns_of("furniture")), ("living", "desk")
    if luck < 0.85:
        return pick(chance, (NOUN["flower"], NOUN["tree"])), ("garden", "landmark")
    return pick(chance, nouns_of("man woman child worker actress")), ("spot", "outside", "work")
