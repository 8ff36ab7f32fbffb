"""Who and what a sentence speaks of, drawn at random."""

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
KNOWN = frozenset(("the", "this", "that", "'s", *POSSESSIVES.values()))
NUMBERS = ("two", "two", "three", "three", "four", "five", "six", "ten")
OWNED = frozenset(
    nouns_of(
        "mate kin pet clothes headwear vehicle thing small tool machine letter home instrument "
        "picture room kitchen office garden teacher doctor school village city bed chair"
    )
)
FRIENDS = nouns_of("mate kin")
# nouns that are often several: not parents, nor places
SEVERAL = frozenset(
    noun
    for noun in NOUNS
    if noun.counted
    and not noun.kinds & {"indoors", "spot", "town", "outside", "built", "shop"}
    and ("kin" not in noun.kinds or "sibling" in noun.kinds)
)
TIES = frozenset(FRIENDS)  # always someone's
PEOPLE = nouns_of("adult child")
CONTENTS = {
    noun: tuple(
        portion
        for portion in PORTIONS
        if portion.kinds & noun.kinds or noun.singular in portion.kinds
    )
    for noun in nouns_of("drink meal")
}


def pick(chance: Random, options: Sequence[T]) -> T:
    """Take one of some options; quicker than Random.choice."""
    return options[int(chance.random() * len(options))]


def adjectives(chance: Random, noun: Noun) -> tuple[Adjective, ...]:
    """Draw none, one or two adjectives; the second of two is a colour."""
    known = ATTRIBUTES[noun]
    if not known or "kin" in noun.kinds:
        return ()
    luck = chance.random() * (2.0 if "person" in noun.kinds else 1.0)
    if luck > 0.42:
        return ()
    first = pick(chance, known)
    if luck > 0.1 or not first.before:
        return (first,)
    colours = tuple(word for word in known if word.colour)
    if not colours or (first.linked and "animal" in noun.kinds):
        return (first,)
    return first, pick(chance, colours)


def possessive(chance: Random, subject: Participant | None) -> str:
    """Draw whose it is: mostly the subject's own."""
    own = POSSESSIVES.get(pronoun_of(subject)) if subject else None
    if own and chance.random() < 0.85:
        return own
    return pick(chance, ("my", "my", "your", "our", "his", "her", "their"))


def owned(chance: Random, noun: Noun, subject: Participant | None = None) -> Nominal:
    """Draw someone's: "my cat", "Marie's cats"."""
    plural = chance.random() < 0.25 and noun in SEVERAL
    words = () if "kin" in noun.kinds else adjectives(chance, noun)
    if chance.random() < 0.2:
        name = pick(chance, NAMES)
        if name != subject:
            return Nominal(noun, "'s", plural, words, owner=name)
    return Nominal(noun, possessive(chance, subject), plural, words)


def known(chance: Random, noun: Noun, subject: Participant | None = None) -> Nominal:
    """Draw what the listener can find: "the cat", "this cat", "my cat"."""
    if noun in TIES or (noun in OWNED and chance.random() < 0.35):
        return owned(chance, noun, subject)
    return pointed(chance, noun)


def pointed(chance: Random, noun: Noun) -> Nominal:
    """Draw what can be pointed at: "the cat", "these cats"."""
    plural = chance.random() < 0.3 and noun in SEVERAL
    near = noun.counted and chance.random() < 0.2
    determiner = pick(chance, ("this", "that")) if near else "the"
    return Nominal(noun, determiner, plural, adjectives(chance, noun))


def counted(chance: Random, noun: Noun) -> Nominal:
    """Draw some number: "three cats", "many cats"."""
    number = "many" if chance.random() < 0.2 else pick(chance, NUMBERS)
    return Nominal(noun, number, True, adjectives(chance, noun))


def single(chance: Random, noun: Noun) -> Nominal:
    """Draw one that is new to the listener: "a red car", or "some bread"."""
    if not noun.counted:
        return Nominal(noun, "some", False, _of_mass(chance, noun))
    return Nominal(noun, "a", False, adjectives(chance, noun))


def fresh(chance: Random, noun: Noun) -> Nominal:
    """Draw what is new to the listener: "a cat", "some tea", "a cup of tea", "three cats"."""
    luck = chance.random()
    if not noun.counted:
        portions = CONTENTS.get(noun, ())
        if portions and luck < 0.3:
            return portion(chance, noun, pick(chance, portions))
        return Nominal(noun, "some" if luck < 0.6 else "", False, _of_mass(chance, noun))
    if luck < 0.5:
        return single(chance, noun)
    if luck < 0.75:
        return counted(chance, noun)
    return Nominal(noun, "some" if luck < 0.85 else "", True, adjectives(chance, noun))


def _of_mass(chance: Random, noun: Noun) -> tuple[Adjective, ...]:
    return adjectives(chance, noun) if chance.random() < 0.5 else ()


def portion(chance: Random, noun: Noun, holder: Noun) -> Nominal:
    """Draw so much of something: "two cups of tea"."""
    if chance.random() < 0.6:
        return Nominal(holder, "a", content=noun)
    return Nominal(holder, pick(chance, NUMBERS[:5]), True, content=noun)


def someone(chance: Random, nouns: Sequence[Noun], anyone: bool) -> Participant:
    """Draw a subject: a pronoun or a name where anyone will do, or one of the nouns."""
    luck = chance.random()
    if anyone and luck < 0.32:
        return pick(chance, PRONOUNS)
    if anyone and luck < 0.48:
        return pick(chance, NAMES)
    noun = pick(chance, nouns)
    if noun in TIES or luck < 0.9:
        return known(chance, noun)
    if luck < 0.97:
        return counted(chance, noun)
    every = chance.random() < 0.5
    return Nominal(noun, "every" if every else "all the", not every)


def vague(who: Participant) -> bool:
    """It is said of no one in particular."""
    return isinstance(who, Nominal) and who.determiner not in KNOWN


def other(chance: Random, subject: Participant) -> Participant:
    """Draw a person who is not the subject."""
    luck = chance.random()
    if luck < 0.35:
        found = pick(chance, PRONOUNS)
        return owned(chance, pick(chance, FRIENDS), subject) if _same(found, subject) else found
    if luck < 0.5:
        name = pick(chance, NAMES)
        return PRONOUNS[5] if name == subject else name
    if luck < 0.8:
        return owned(chance, pick(chance, FRIENDS), subject)
    return known(chance, pick(chance, PEOPLE), subject)


def _same(one: Participant, two: Participant) -> bool:
    """One of them is part of the other: "I" and "us", "you" and "you"."""
    first, second = pronoun_of(one), pronoun_of(two)
    return first == second or {first, second} == {"I", "we"}


def place(chance: Random, kinds: Sequence[str], subject: Participant | None = None) -> Place:
    """Draw where."""
    nouns, prepositions = pick(chance, PLACES[pick(chance, kinds)])
    noun, preposition = pick(chance, nouns), pick(chance, prepositions)
    luck = chance.random()
    if noun in OWNED and luck < 0.25:
        return Place(preposition, owned(chance, noun, subject)._replace(plural=False))
    new = luck > 0.88 and preposition not in ("at", "to")
    determiner = "this" if luck > 0.95 else "a" if new else "the"
    words = adjectives(chance, noun) if chance.random() < 0.3 else ()
    return Place(preposition, Nominal(noun, determiner, False, words))
