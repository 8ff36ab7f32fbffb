"""Who does what, where and when, drawn at random."""

from random import Random

from regard.text.phrasebook.draw.nominals import (
    POSSESSIVES,
    counted,
    fresh,
    known,
    other,
    pick,
    place,
    single,
    someone,
)
from regard.text.phrasebook.lexicon.frames import ACTIONS, GIFTS, Frame
from regard.text.phrasebook.lexicon.nouns import NAMES, Noun
from regard.text.phrasebook.lexicon.phrases import OFTEN, TIMES, Adverb
from regard.text.phrasebook.meaning import Clause, Nominal, Participant, Pronoun, Tense

FRAMES = ACTIONS + GIFTS + GIFTS
MODALS = ("can", "must", "want", "want", "like")
SHARED = frozenset(["eat", "play", "dance", "walk", "travel", "study", "work", "sing", "live"])
# verbs whose object the listener knows, and verbs whose object is new
SPECIFIC = frozenset(
    [
        "open",
        "close",
        "clean",
        "know",
        "lose",
        "find",
        "help",
        "meet",
        "follow",
        "chase",
        "repair",
        "wash",
        "look",
        "wait",
        "love",
    ]
)
KNOWN = frozenset(("the", "this", "that", "'s", *POSSESSIVES.values()))
FREQUENT = ("often", "often", "always", "sometimes", "also", "never")
_TENSES: tuple[Tense, ...] = (
    *("simple", "simple", "progressive", "progressive", "progressive"),
    *("past", "past", "past", "past", "future", "going", "modal", "modal", "modal"),
)
_TIMES: dict[str, tuple[Adverb, ...]] = {
    tense: tuple(time for time in TIMES if tense in time.tenses)
    for tense in ("simple", "progressive", "past", "future", "modal")
}
_TIMES["going"] = _TIMES["future"]


def tense(chance: Random, frame: Frame) -> Tense:
    """Draw a tense that the verb has."""
    while True:
        found = pick(chance, _TENSES)
        if ("future" if found == "going" else found) in frame.tenses:
            return found


def clause(
    chance: Random, frame: Frame | None = None, subject: Participant | None = None
) -> Clause:
    """Draw a statement."""
    frame = frame or pick(chance, FRAMES)
    subject = subject or someone(chance, frame.subjects, frame.by_anyone)
    when = tense(chance, frame)
    negated = chance.random() < 0.17 and deniable(subject, when)
    modal = _modal(chance, subject) if when == "modal" else ""
    told = Clause(
        frame,
        subject,
        thing(chance, frame, subject, negated),
        tense=when,
        negated=negated,
        modal=modal,
    )
    return circumstances(chance, told)


def deniable(subject: Participant, when: Tense) -> bool:
    """A negation is clear: not of every one, nor of what goes on in Chinese."""
    vague = isinstance(subject, Nominal) and subject.determiner in ("every", "all the", "many")
    return not vague and when not in ("progressive", "going")


def _modal(chance: Random, subject: Participant) -> str:
    animal = isinstance(subject, Nominal) and "animal" in subject.noun.kinds
    return "want" if animal else pick(chance, MODALS)


def thing(
    chance: Random, frame: Frame, subject: Participant, negated: bool = False
) -> Participant | None:
    """Draw an object that the verb takes."""
    if not frame.objects:
        return None
    noun = pick(chance, frame.objects)
    if frame.to_anyone and chance.random() < 0.35:
        return other(chance, subject)
    if "person" in noun.kinds and frame.verb.base != "have":
        return known(chance, noun, subject)
    if frame.verb.base in ("have", "like", "hate", "love") or frame.verb.preposition:
        return _special(chance, frame, noun, subject, negated)
    if "language" in noun.kinds or "music" in noun.kinds:
        return Nominal(noun, "")
    if frame.verb.base == "take" and "transport" in noun.kinds:
        return Nominal(noun)
    return _plain(chance, frame, noun, subject, negated)


def _special(
    chance: Random, frame: Frame, noun: Noun, subject: Participant, negated: bool
) -> Nominal:
    """Draw what is had, liked or played."""
    verb = frame.verb.base
    if verb == "play":
        return Nominal(noun)
    if verb == "have":
        if negated:
            return Nominal(noun, "a")
        return counted(chance, noun) if chance.random() < 0.4 else single(chance, noun)
    if chance.random() < 0.7 and "kin" not in noun.kinds:
        return Nominal(noun, "", noun.counted)
    return known(chance, noun, subject)


def _plain(
    chance: Random, frame: Frame, noun: Noun, subject: Participant, negated: bool
) -> Nominal:
    if frame.verb.base in SPECIFIC or chance.random() < 0.45:
        return known(chance, noun, subject)
    if frame.verb.base == "wear":
        return single(chance, noun)
    drawn = fresh(chance, noun)
    return _under_negation(drawn) if negated else drawn


def _under_negation(drawn: Nominal) -> Nominal:
    """Keep to "a", "any" and nothing: numbers would be unclear."""
    if drawn.content or drawn.determiner == "":
        return drawn._replace(determiner="a", plural=False) if drawn.content else drawn
    if drawn.noun.counted and not drawn.plural:
        return drawn._replace(determiner="a")
    return drawn._replace(determiner="any")


def circumstances(chance: Random, told: Clause) -> Clause:
    """Add who receives, with whom, where, when and how often."""
    frame = told.frame
    if frame.recipient:
        told = told._replace(recipient=other(chance, told.subject))
    if frame.verb.base in SHARED and not frame.recipient and chance.random() < 0.15:
        told = told._replace(companion=_companion(chance, told.subject))
    needs_place = frame.placed or frame.verb.base in ("go", "arrive", "swim")
    if frame.places and (needs_place or chance.random() < _place_share(told)):
        told = told._replace(place=place(chance, frame.places, told.subject))
    return dated(chance, told)


def _place_share(told: Clause) -> float:
    return 0.25 if told.object else 0.7


def _companion(chance: Random, subject: Participant) -> Participant:
    found = other(chance, subject)
    return found if isinstance(found, Nominal | Pronoun) or found != subject else NAMES[0]


def dated(chance: Random, told: Clause) -> Clause:
    """Add when; a past without an end needs it, and a present wants "often" or "every day"."""
    luck = chance.random()
    acting = told.frame.tenses != {"simple"} and not told.frame.placed
    if told.tense == "simple":
        if not acting or told.negated or luck < 0.25:
            return told
        if luck < 0.65:
            return _repeated(told, pick(chance, FREQUENT))
    share = {"simple": 1.0, "past": 0.65, "future": 0.6, "going": 0.5, "progressive": 0.15}
    needed = told.tense == "past" and not told.frame.finished
    if needed or chance.random() < share.get(told.tense, 0.1):
        when = pick(chance, _TIMES[told.tense])
        return told._replace(time=when, fronted=chance.random() < 0.25)
    return told


def _repeated(told: Clause, often: str) -> Clause:
    """Add how often; "never" denies what is new."""
    if often != "never":
        return told._replace(often=OFTEN[often])
    if not deniable(told.subject, told.tense):
        return told
    drawn = told.object
    if isinstance(drawn, Nominal) and drawn.determiner not in KNOWN and not told.frame.verb.article:
        told = told._replace(object=_under_negation(drawn))
    return told._replace(often=OFTEN[often])
