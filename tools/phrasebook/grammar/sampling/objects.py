"""Random objects of verbs."""

from random import Random

from grammar.lexicon.frames import Frame
from grammar.lexicon.nouns import Noun
from grammar.lexicon.verbs import verb_bases
from grammar.meaning import Nominal, Participant
from grammar.sampling.nominals import (
    DEFINITE,
    RELATIONS,
    choose,
    definite_nominal,
    demonstrative_nominal,
    indefinite_nominal,
    numeral_nominal,
    other_person,
    singular_indefinite,
)

_OF_KNOWN_THINGS = verb_bases("open close know lose find help chase repair wash look wait love")
OF_NEW_THINGS = verb_bases("write make send")


def sample_object(
    rng: Random, frame: Frame, subject: Participant, usual: bool, negated: bool
) -> Participant | None:
    """Draw an object that the verb takes; a usual one is not any one in particular."""
    if not frame.objects:
        return None
    if frame.any_object and rng.random() < 0.45:
        return other_person(rng, subject)
    noun = choose(rng, frame.objects)
    verb = frame.verb
    if verb.preposition or (verb.base == "take" and "transport" in noun.kinds):
        return Nominal(noun)
    if noun.kinds & {"language", "music"}:
        return Nominal(noun, "")
    if verb.base == "have":
        return _object_of_have(rng, noun, negated)
    if "person" in noun.kinds:
        return definite_nominal(rng, noun, subject)
    if verb.article:
        return _object_of_liking(rng, noun, subject)
    nominal = _other_object(rng, frame, noun, subject, usual)
    return under_negation(nominal, usual) if negated else nominal


def _object_of_have(rng: Random, noun: Noun, negated: bool) -> Nominal:
    if negated:
        return Nominal(noun, "a")
    return numeral_nominal(rng, noun) if rng.random() < 0.4 else singular_indefinite(rng, noun)


def _object_of_liking(rng: Random, noun: Noun, subject: Participant) -> Nominal:
    """Draw things in general, or an animal one knows."""
    if "animal" in noun.kinds and rng.random() < 0.4:
        return definite_nominal(rng, noun, subject)
    return Nominal(noun, "", noun.countable)


def _other_object(
    rng: Random, frame: Frame, noun: Noun, subject: Participant, usual: bool
) -> Nominal:
    verb = frame.verb.base
    u = rng.random()
    if verb in _OF_KNOWN_THINGS:
        return definite_nominal(rng, noun, subject)
    if usual and frame.tenses != {"simple"} and u < 0.7:
        return _habitual_object(rng, noun)
    if verb not in OF_NEW_THINGS and u < 0.5:
        return (
            demonstrative_nominal(rng, noun)
            if verb == "buy"
            else definite_nominal(rng, noun, subject)
        )
    one = verb in ("wear", "drive") or (verb in OF_NEW_THINGS and not noun.countable)
    return singular_indefinite(rng, noun) if one else indefinite_nominal(rng, noun)


def _habitual_object(rng: Random, noun: Noun) -> Nominal:
    """Draw what one does every day: "apples", "a book", "coffee"."""
    if not noun.countable:
        return Nominal(noun, "")
    nominal = singular_indefinite(rng, noun)
    return nominal if rng.random() < 0.4 else nominal._replace(determiner="", plural=True)


def under_negation(nominal: Nominal, usual: bool) -> Nominal:
    """Return an object as it is under negation: "a coat", "any coats", "coats"; no numerals."""
    if nominal.determiner in DEFINITE or nominal.noun in RELATIONS:
        return nominal
    if nominal.content:
        return Nominal(nominal.content, "any")
    if not nominal.noun.countable:
        return nominal._replace(determiner="any")
    if usual:
        return nominal._replace(determiner="", plural=True)
    return nominal._replace(determiner="any" if nominal.plural else "a")
