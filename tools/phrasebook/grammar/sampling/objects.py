"""What a verb is done to, drawn at random."""

from random import Random

from grammar.lexicon.frames import Frame
from grammar.lexicon.nouns import Noun
from grammar.lexicon.verbs import verbs_called
from grammar.meaning import Nominal, Participant
from grammar.sampling.nominals import (
    KNOWN,
    TIES,
    counted,
    fresh,
    known,
    other,
    pick,
    pointed,
    single,
)

_OLD = verbs_called("open close know lose find help chase repair wash look wait love")
NEW = verbs_called("write make send")


def thing(
    chance: Random, frame: Frame, subject: Participant, usual: bool, negated: bool
) -> Participant | None:
    """Draw an object that the verb takes; a usual one is not any one in particular."""
    if not frame.objects:
        return None
    if frame.to_anyone and chance.random() < 0.45:
        return other(chance, subject)
    noun = pick(chance, frame.objects)
    verb = frame.verb
    if verb.preposition or (verb.base == "take" and "transport" in noun.kinds):
        return Nominal(noun)
    if noun.kinds & {"language", "music"}:
        return Nominal(noun, "")
    if verb.base == "have":
        return _had(chance, noun, negated)
    if "person" in noun.kinds:
        return known(chance, noun, subject)
    if verb.article:
        return _liked(chance, noun, subject)
    drawn = _drawn(chance, frame, noun, subject, usual)
    return denied(drawn, usual) if negated else drawn


def _had(chance: Random, noun: Noun, negated: bool) -> Nominal:
    if negated:
        return Nominal(noun, "a")
    return counted(chance, noun) if chance.random() < 0.4 else single(chance, noun)


def _liked(chance: Random, noun: Noun, subject: Participant) -> Nominal:
    """Draw things in general, or an animal one knows."""
    if "animal" in noun.kinds and chance.random() < 0.4:
        return known(chance, noun, subject)
    return Nominal(noun, "", noun.counted)


def _drawn(chance: Random, frame: Frame, noun: Noun, subject: Participant, usual: bool) -> Nominal:
    verb = frame.verb.base
    luck = chance.random()
    if verb in _OLD:
        return known(chance, noun, subject)
    if usual and frame.tenses != {"simple"} and luck < 0.7:
        return _usual(chance, noun)
    if verb not in NEW and luck < 0.5:
        return pointed(chance, noun) if verb == "buy" else known(chance, noun, subject)
    one = verb in ("wear", "drive") or (verb in NEW and not noun.counted)
    return single(chance, noun) if one else fresh(chance, noun)


def _usual(chance: Random, noun: Noun) -> Nominal:
    """Draw what one does every day: "apples", "a book", "coffee"."""
    if not noun.counted:
        return Nominal(noun, "")
    drawn = single(chance, noun)
    return drawn if chance.random() < 0.4 else drawn._replace(determiner="", plural=True)


def denied(drawn: Nominal, usual: bool) -> Nominal:
    """Keep to what a negation leaves clear: "a coat", "any coats", "coats"; no numbers."""
    if drawn.determiner in KNOWN or drawn.noun in TIES:
        return drawn
    if drawn.content:
        return Nominal(drawn.content, "any")
    if not drawn.noun.counted:
        return drawn._replace(determiner="any")
    if usual:
        return drawn._replace(determiner="", plural=True)
    return drawn._replace(determiner="any" if drawn.plural else "a")
