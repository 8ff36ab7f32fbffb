"""Who does what, where and when, drawn at random."""

from random import Random

from grammar.lexicon.frames import ACTIONS, GIFTS, Frame
from grammar.lexicon.phrases import OFTEN, TIMES, Adverb
from grammar.lexicon.verbs import verbs_called
from grammar.meaning import Clause, Nominal, Participant, Tense
from grammar.sampling.nominals import other, pick, place, someone, vague
from grammar.sampling.objects import denied, thing

FRAMES = ACTIONS + GIFTS + GIFTS
_MODALS = ("can", "must", "want", "want", "like", "like")
_SHARED = verbs_called("eat play dance walk work sing live")
_UNDENIED = verbs_called("love hate")
_NO_FUN = verbs_called("wait look open close take leave stay come")
_LONG = verbs_called("buy sell visit work repair live")
_NEEDS_PLACE = verbs_called("go sit live stay")
_FREQUENT = ("often", "often", "always", "sometimes", "also", "never")
_TENSES: tuple[Tense, ...] = (
    *("simple", "simple", "progressive", "progressive", "progressive"),
    *("past", "past", "past", "past", "future", "going", "modal", "modal", "modal"),
)
_TIMES: dict[tuple[Tense, bool], tuple[Adverb, ...]] = {
    (tense, long): tuple(
        time
        for time in TIMES
        if ("future" if tense == "going" else tense) in time.tenses
        and (long or "long" not in time.tenses)
    )
    for tense in set(_TENSES)
    for long in (False, True)
}
_TIME_SHARE: dict[Tense, float] = {
    "simple": 1.0,
    "progressive": 0.15,
    "past": 0.65,
    "future": 0.6,
    "going": 0.5,
    "modal": 0.1,
}


def clause(
    chance: Random,
    frame: Frame | None = None,
    subject: Participant | None = None,
    negated: bool | None = None,
) -> Clause:
    """Draw a statement."""
    frame = frame or pick(chance, FRAMES)
    subject = subject or someone(chance, frame.subjects, frame.by_anyone)
    when = tense(chance, frame)
    if negated is None:
        negated = chance.random() < 0.17 and deniable(frame, subject, when)
    modal = _modal(chance, frame, subject) if when == "modal" else ""
    usual = when == "simple" or modal == "like"
    drawn = thing(chance, frame, subject, usual, negated)
    told = Clause(frame, subject, drawn, tense=when, modal=modal, negated=negated)
    return circumstances(chance, told)


def tense(chance: Random, frame: Frame) -> Tense:
    """Draw a tense that the verb has."""
    while True:
        found = pick(chance, _TENSES)
        if ("future" if found == "going" else found) in frame.tenses:
            return found


def deniable(frame: Frame, subject: Participant, when: Tense) -> bool:
    """A negation is clear: not of every one, nor of what goes on in Chinese."""
    return (
        not vague(subject)
        and when not in ("progressive", "going")
        and frame.verb.base not in _UNDENIED
    )


def _modal(chance: Random, frame: Frame, subject: Participant) -> str:
    if isinstance(subject, Nominal) and "animal" in subject.noun.kinds:
        return "want"
    return pick(chance, _MODALS[:4] if frame.verb.base in _NO_FUN else _MODALS)


def circumstances(chance: Random, told: Clause) -> Clause:
    """Add who receives, with whom, where, when and how often."""
    frame, subject = told.frame, told.subject
    if frame.recipient:
        told = told._replace(recipient=other(chance, subject))
    if frame.verb.base in _SHARED and frame.by_anyone and chance.random() < 0.15:
        told = told._replace(companion=other(chance, subject))
    share = 0.25 if told.object else 0.7
    if frame.places and (frame.verb.base in _NEEDS_PLACE or chance.random() < share):
        told = told._replace(place=place(chance, frame.places, subject))
    return dated(chance, told)


def dated(chance: Random, told: Clause) -> Clause:
    """Add when; a past without an end needs it, and a present wants "often" or "every day"."""
    frame, luck = told.frame, chance.random()
    if told.tense == "simple":
        acting = frame.tenses != {"simple"} and not frame.placed
        complete = told.place or told.object
        if not acting or told.negated or (complete and luck < 0.25):
            return told
        if luck < 0.65:
            return _repeated(told, pick(chance, _FREQUENT))
    needed = told.tense == "past" and not frame.finished
    if needed or chance.random() < _TIME_SHARE[told.tense]:
        when = pick(chance, _TIMES[told.tense, frame.verb.base in _LONG])
        return told._replace(time=when, fronted=chance.random() < 0.25)
    return told


def _repeated(told: Clause, often: str) -> Clause:
    """Add how often; "never" denies what is new."""
    if vague(told.subject):
        return told
    if often != "never":
        return told._replace(often=OFTEN[often])
    if not deniable(told.frame, told.subject, told.tense):
        return told
    if isinstance(told.object, Nominal) and not told.frame.verb.article:
        told = told._replace(object=denied(told.object, usual=True))
    return told._replace(often=OFTEN[often])
