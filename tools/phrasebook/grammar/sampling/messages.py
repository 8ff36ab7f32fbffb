"""Random messages: noun phrases, greetings and sentences as people type them."""

from random import Random

from grammar.lexicon.nouns import NAMES, NOUNS
from grammar.lexicon.phrases import FORMULAS
from grammar.meaning import Greeting, Meaning, Nominal, Participant
from grammar.sampling.nominals import (
    FRIENDS,
    choose,
    definite_nominal,
    indefinite_nominal,
    possessive_nominal,
)
from grammar.sampling.sentences import sentence
from grammar.words import Style

_NAMED = tuple(noun for noun in NOUNS if "language" not in noun.kinds)


def message(rng: Random) -> tuple[Meaning, Style]:
    """Draw a noun phrase, a greeting or a sentence, often without capital and final mark."""
    u = rng.random()
    if u < 0.4:
        return sentence(rng), choose(rng, (Style(False, False), Style(True, False), Style(False)))
    style = Style(rng.random() < 0.5, rng.random() < 0.3)
    return (noun_phrase(rng) if u < 0.75 else greeting(rng)), style


def noun_phrase(rng: Random) -> Nominal:
    """Draw a noun phrase that stands alone: "the old cat", "a cup of tea"."""
    noun = choose(rng, _NAMED)
    return definite_nominal(rng, noun) if rng.random() < 0.7 else indefinite_nominal(rng, noun)


def greeting(rng: Random) -> Greeting:
    """Draw a greeting: "hello", "thank you, my friend"."""
    u = rng.random()
    addressee: Participant | None = None
    if u < 0.4:
        addressee = choose(rng, NAMES)
    elif u < 0.7:
        friend = possessive_nominal(rng, choose(rng, FRIENDS))
        addressee = friend._replace(determiner="my", owner=None)
    return Greeting(choose(rng, FORMULAS), addressee, exclaimed=rng.random() < 0.5)
