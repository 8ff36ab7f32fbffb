"""Random noun phrases and other participants."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from grammar.lexicon.adjectives import ATTRIBUTES, Adjective
from grammar.lexicon.nouns import NAMES, NOUNS, PORTIONS, Noun, nouns_of
from grammar.lexicon.phrases import PLACES
from grammar.meaning import Nominal, Participant, Place, Pronoun, pronoun_of

T = TypeVar("T")

PRONOUNS = tuple(Pronoun(word) for word in ("I", "you", "he", "she", "we", "they"))
POSSESSIVES = {"I": "my", "you": "your", "he": "his", "she": "her", "we": "our", "they": "their"}
DEFINITE = frozenset(("the", "this", "that", "'s", *POSSESSIVES.values()))
NUMBERS = ("two", "two", "three", "three", "four", "five", "six", "ten")
POSSESSABLE = frozenset(
    nouns_of(
        "mate kin pet clothes headwear vehicle thing small tool machine letter home instrument "
        "picture room kitchen office garden teacher doctor school village city bed chair"
    )
)
FRIENDS = nouns_of("mate kin")
# nouns that are often several: not parents, nor places
PLURALIZABLE = frozenset(
    noun
    for noun in NOUNS
    if noun.countable
    and not noun.kinds & {"indoors", "spot", "town", "outside", "built", "shop"}
    and ("kin" not in noun.kinds or "sibling" in noun.kinds)
)
RELATIONS = frozenset(FRIENDS)  # always someone's
PEOPLE = nouns_of("adult child")
CONTENTS = {
    noun: tuple(
        portion
        for portion in PORTIONS
        if portion.kinds & noun.kinds or noun.singular in portion.kinds
    )
    for noun in nouns_of("drink meal")
}


def choose(rng: Random, options: Sequence[T]) -> T:
    """Choose one of some options, faster than Random.choice."""
    return options[int(rng.random() * len(options))]


def adjectives(rng: Random, noun: Noun) -> tuple[Adjective, ...]:
    """Draw none, one or two adjectives; the second of two is a colour."""
    known = ATTRIBUTES[noun]
    if not known or "kin" in noun.kinds:
        return ()
    u = rng.random() * (2.0 if "person" in noun.kinds else 1.0)
    if u > 0.42:
        return ()
    first = choose(rng, known)
    if u > 0.1 or not first.before:
        return (first,)
    colours = tuple(word for word in known if word.colour)
    if not colours or (first.linked and "animal" in noun.kinds):
        return (first,)
    return first, choose(rng, colours)


def possessive(rng: Random, subject: Participant | None) -> str:
    """Draw whose it is: mostly the subject's own."""
    own = POSSESSIVES.get(pronoun_of(subject)) if subject else None
    if own and rng.random() < 0.85:
        return own
    return choose(rng, ("my", "my", "your", "our", "his", "her", "their"))


def possessive_nominal(rng: Random, noun: Noun, subject: Participant | None = None) -> Nominal:
    """Draw a possessive: "my cat", "Marie's cats"."""
    plural = rng.random() < 0.25 and noun in PLURALIZABLE
    words = () if "kin" in noun.kinds else adjectives(rng, noun)
    if rng.random() < 0.2:
        name = choose(rng, NAMES)
        if name != subject:
            return Nominal(noun, "'s", plural, words, owner=name)
    return Nominal(noun, possessive(rng, subject), plural, words)


def definite_nominal(rng: Random, noun: Noun, subject: Participant | None = None) -> Nominal:
    """Draw a definite: "the cat", "this cat", "my cat"."""
    if noun in RELATIONS or (noun in POSSESSABLE and rng.random() < 0.35):
        return possessive_nominal(rng, noun, subject)
    return demonstrative_nominal(rng, noun)


def demonstrative_nominal(rng: Random, noun: Noun) -> Nominal:
    """Draw an article or demonstrative: "the cat", "these cats"."""
    plural = rng.random() < 0.3 and noun in PLURALIZABLE
    near = noun.countable and rng.random() < 0.2
    determiner = choose(rng, ("this", "that")) if near else "the"
    return Nominal(noun, determiner, plural, adjectives(rng, noun))


def numeral_nominal(rng: Random, noun: Noun) -> Nominal:
    """Draw a numeral or "many": "three cats", "many cats"."""
    number = "many" if rng.random() < 0.2 else choose(rng, NUMBERS)
    return Nominal(noun, number, True, adjectives(rng, noun))


def singular_indefinite(rng: Random, noun: Noun) -> Nominal:
    """Draw a singular indefinite: "a red car", "some bread"."""
    if not noun.countable:
        return Nominal(noun, "some", False, _mass_adjectives(rng, noun))
    return Nominal(noun, "a", False, adjectives(rng, noun))


def indefinite_nominal(rng: Random, noun: Noun) -> Nominal:
    """Draw an indefinite: "a cat", "some tea", "a cup of tea", "three cats"."""
    u = rng.random()
    if not noun.countable:
        portions = CONTENTS.get(noun, ())
        if portions and u < 0.3:
            return portion(rng, noun, choose(rng, portions))
        return Nominal(noun, "some" if u < 0.6 else "", False, _mass_adjectives(rng, noun))
    if u < 0.5:
        return singular_indefinite(rng, noun)
    if u < 0.75:
        return numeral_nominal(rng, noun)
    return Nominal(noun, "some" if u < 0.85 else "", True, adjectives(rng, noun))


def _mass_adjectives(rng: Random, noun: Noun) -> tuple[Adjective, ...]:
    return adjectives(rng, noun) if rng.random() < 0.5 else ()


def portion(rng: Random, noun: Noun, holder: Noun) -> Nominal:
    """Draw a portion: "two cups of tea"."""
    if rng.random() < 0.6:
        return Nominal(holder, "a", content=noun)
    return Nominal(holder, choose(rng, NUMBERS[:5]), True, content=noun)


def sample_subject(rng: Random, nouns: Sequence[Noun], anyone: bool) -> Participant:
    """Draw a subject: a pronoun or a name where anyone will do, or one of the nouns."""
    u = rng.random()
    if anyone and u < 0.32:
        return choose(rng, PRONOUNS)
    if anyone and u < 0.48:
        return choose(rng, NAMES)
    noun = choose(rng, nouns)
    if noun in RELATIONS or u < 0.9:
        return definite_nominal(rng, noun)
    if u < 0.97:
        return numeral_nominal(rng, noun)
    every = rng.random() < 0.5
    return Nominal(noun, "every" if every else "all the", not every)


def is_indefinite(who: Participant) -> bool:
    """Return whether a participant is indefinite."""
    return isinstance(who, Nominal) and who.determiner not in DEFINITE


def other_person(rng: Random, subject: Participant) -> Participant:
    """Draw a person who is not the subject."""
    u = rng.random()
    if u < 0.35:
        pronoun = choose(rng, PRONOUNS)
        return (
            possessive_nominal(rng, choose(rng, FRIENDS), subject)
            if _overlap(pronoun, subject)
            else pronoun
        )
    if u < 0.5:
        name = choose(rng, NAMES)
        return PRONOUNS[5] if name == subject else name
    if u < 0.8:
        return possessive_nominal(rng, choose(rng, FRIENDS), subject)
    return definite_nominal(rng, choose(rng, PEOPLE), subject)


def _overlap(one: Participant, two: Participant) -> bool:
    """Return whether two participants overlap: "I" and "us", "you" and "you"."""
    first, second = pronoun_of(one), pronoun_of(two)
    return first == second or {first, second} == {"I", "we"}


def place(rng: Random, kinds: Sequence[str], subject: Participant | None = None) -> Place:
    """Draw a place."""
    nouns, prepositions = choose(rng, PLACES[choose(rng, kinds)])
    noun, preposition = choose(rng, nouns), choose(rng, prepositions)
    u = rng.random()
    if noun in POSSESSABLE and u < 0.25:
        return Place(preposition, possessive_nominal(rng, noun, subject)._replace(plural=False))
    new = u > 0.88 and preposition not in ("at", "to")
    determiner = "this" if u > 0.95 else "a" if new else "the"
    words = adjectives(rng, noun) if rng.random() < 0.3 else ()
    return Place(preposition, Nominal(noun, determiner, False, words))
