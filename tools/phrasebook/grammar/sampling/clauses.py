"""Random clauses: who does what, where and when."""

from random import Random

from grammar.lexicon.frames import ACTIONS, GIFTS, Frame
from grammar.lexicon.phrases import OFTEN, TIMES, Adverb
from grammar.lexicon.verbs import verb_bases
from grammar.meaning import Clause, Nominal, Participant, Tense
from grammar.sampling.nominals import choose, is_indefinite, other_person, place, sample_subject
from grammar.sampling.objects import sample_object, under_negation

FRAMES = ACTIONS + GIFTS + GIFTS
_MODALS = ("can", "must", "want", "want", "like", "like")
_WITH_COMPANION = verb_bases("eat play dance walk work sing live")
_NOT_NEGATED = verb_bases("love hate")
_NOT_LIKED = verb_bases("wait look open close take leave stay come")
_OF_LONG_TIMES = verb_bases("buy sell visit work repair live")
_NEEDS_PLACE = verb_bases("go sit live stay")
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
    rng: Random,
    frame: Frame | None = None,
    subject: Participant | None = None,
    negated: bool | None = None,
) -> Clause:
    """Draw a statement."""
    frame = frame or choose(rng, FRAMES)
    subject = subject or sample_subject(rng, frame.subjects, frame.any_subject)
    when = sample_tense(rng, frame)
    if negated is None:
        negated = rng.random() < 0.17 and can_negate(frame, subject, when)
    modal = _modal(rng, frame, subject) if when == "modal" else ""
    usual = when == "simple" or modal == "like"
    thing = sample_object(rng, frame, subject, usual, negated)
    meaning = Clause(frame, subject, thing, tense=when, modal=modal, negated=negated)
    return add_adjuncts(rng, meaning)


def sample_tense(rng: Random, frame: Frame) -> Tense:
    """Draw a tense that the verb has."""
    while True:
        tense = choose(rng, _TENSES)
        if ("future" if tense == "going" else tense) in frame.tenses:
            return tense


def can_negate(frame: Frame, subject: Participant, when: Tense) -> bool:
    """Return whether a negation is unambiguous: no indefinite subject, no progressive."""
    return (
        not is_indefinite(subject)
        and when not in ("progressive", "going")
        and frame.verb.base not in _NOT_NEGATED
    )


def _modal(rng: Random, frame: Frame, subject: Participant) -> str:
    if isinstance(subject, Nominal) and "animal" in subject.noun.kinds:
        return "want"
    return choose(rng, _MODALS[:4] if frame.verb.base in _NOT_LIKED else _MODALS)


def add_adjuncts(rng: Random, meaning: Clause) -> Clause:
    """Add recipient, companion, place, time and frequency."""
    frame, subject = meaning.frame, meaning.subject
    if frame.recipient:
        meaning = meaning._replace(recipient=other_person(rng, subject))
    if frame.verb.base in _WITH_COMPANION and frame.any_subject and rng.random() < 0.15:
        meaning = meaning._replace(companion=other_person(rng, subject))
    share = 0.25 if meaning.object else 0.7
    if frame.places and (frame.verb.base in _NEEDS_PLACE or rng.random() < share):
        meaning = meaning._replace(place=place(rng, frame.places, subject))
    return add_time(rng, meaning)


def add_time(rng: Random, meaning: Clause) -> Clause:
    """Add a time or frequency; an imperfective past needs one, and a habitual present wants one."""
    frame, u = meaning.frame, rng.random()
    if meaning.tense == "simple":
        acting = frame.tenses != {"simple"} and not frame.place_after_verb
        complete = meaning.place or meaning.object
        if not acting or meaning.negated or (complete and u < 0.25):
            return meaning
        if u < 0.65:
            return _add_frequency(meaning, choose(rng, _FREQUENT))
    needed = meaning.tense == "past" and not frame.perfective
    if needed or rng.random() < _TIME_SHARE[meaning.tense]:
        when = choose(rng, _TIMES[meaning.tense, frame.verb.base in _OF_LONG_TIMES])
        return meaning._replace(time=when, fronted=rng.random() < 0.25)
    return meaning


def _add_frequency(meaning: Clause, often: str) -> Clause:
    """Add a frequency; under "never" the object is as under negation."""
    if is_indefinite(meaning.subject):
        return meaning
    if often != "never":
        return meaning._replace(often=OFTEN[often])
    if not can_negate(meaning.frame, meaning.subject, meaning.tense):
        return meaning
    if isinstance(meaning.object, Nominal) and not meaning.frame.verb.article:
        meaning = meaning._replace(object=under_negation(meaning.object, usual=True))
    return meaning._replace(often=OFTEN[often])
