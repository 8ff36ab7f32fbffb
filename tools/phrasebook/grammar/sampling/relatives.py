"""Random relative clauses."""

from random import Random

from grammar.lexicon.frames import ACTIONS, Frame
from grammar.lexicon.nouns import NOUNS
from grammar.lexicon.phrases import OFTEN
from grammar.lexicon.verbs import verb_bases
from grammar.meaning import Clause, Nominal, Tense
from grammar.sampling.clauses import add_adjuncts, clause
from grammar.sampling.nominals import choose, sample_subject

_TENSES: tuple[Tense, ...] = ("progressive", "past", "past", "simple")
_SUBJECT_FRAMES = {
    noun: tuple(
        frame
        for frame in ACTIONS
        if noun in frame.subjects and frame.tenses & set(_TENSES) and frame.verb.base != "have"
    )
    for noun in NOUNS
}
_OBJECT_VERBS = verb_bases(
    "buy read write find see make repair sing sell open visit know help chase take"
)
_OBJECT_FRAMES = {
    noun: tuple(
        frame
        for frame in ACTIONS
        if noun in frame.objects
        and frame.verb.base in _OBJECT_VERBS
        and "transport" not in noun.kinds
    )
    for noun in NOUNS
}


def add_relative(rng: Random, thing: Nominal, main: Clause) -> Nominal:
    """Add a relative clause; it has a time only if the main clause has none."""
    active, passive = (
        [frame for frame in frames[thing.noun] if frame.verb != main.frame.verb]
        for frames in (_SUBJECT_FRAMES, _OBJECT_FRAMES)
    )
    if active and (not passive or rng.random() < 0.75):
        meaning = _subject_relative(rng, thing, choose(rng, active))
    elif passive:
        meaning = _object_relative(rng, thing, choose(rng, passive))
    else:
        return thing
    return thing._replace(relative=_shorten(meaning, dated=main.time is None))


def _subject_relative(rng: Random, thing: Nominal, frame: Frame) -> Clause:
    """Draw "who sells bread"."""
    return clause(rng, _keep_relative_tenses(frame), thing, negated=False)._replace(gap="subject")


def _object_relative(rng: Random, thing: Nominal, frame: Frame) -> Clause:
    """Draw "that Marie bought"."""
    frame = _keep_relative_tenses(frame)
    subject = sample_subject(rng, frame.subjects, frame.any_subject)
    if isinstance(subject, Nominal) and subject.determiner == "that":
        subject = subject._replace(determiner="this")  # "that that man" is hard to read
    when = choose(rng, [tense for tense in _TENSES if tense in frame.tenses])
    meaning = Clause(frame._replace(places=()), subject, thing, tense=when, gap="object")
    return add_adjuncts(rng, meaning)


def _shorten(meaning: Clause, dated: bool) -> Clause:
    """Drop what could be read as part of the main clause."""
    often = None if meaning.often in (OFTEN["never"], OFTEN["also"]) else meaning.often
    short = dated and meaning.place is None and meaning.companion is None
    return meaning._replace(fronted=False, often=often, time=meaning.time if short else None)


def _keep_relative_tenses(frame: Frame) -> Frame:
    """Keep present and past: wishes and plans do not identify anything."""
    return frame._replace(tenses=frame.tenses & set(_TENSES))
