"""Random compounds: two propositions joined by because, but, when or if."""

from random import Random

from grammar.lexicon.adjectives import (
    MOODS,
    PREDICATES,
    Adjective,
    adjective_names,
)
from grammar.lexicon.frames import ACTIONS, Frame
from grammar.lexicon.nouns import NAMES, Noun, nouns_of
from grammar.lexicon.verbs import verb_bases
from grammar.meaning import (
    Clause,
    Compound,
    Nominal,
    Participant,
    State,
    Tense,
    to_pronoun,
)
from grammar.sampling.clauses import clause
from grammar.sampling.nominals import (
    choose,
    definite_nominal,
    demonstrative_nominal,
    is_indefinite,
    sample_subject,
)
from grammar.sampling.states import PEOPLE

_GOOD = adjective_names("beautiful fast interesting delicious fresh clean")
_BAD = adjective_names("expensive old dirty heavy cold small")
_LIKE, _HATE = (
    next(frame for frame in ACTIONS if frame.verb.base == verb) for verb in ("like", "hate")
)
_TASTES = tuple(nouns_of(kinds) for kinds in ("meal", "drink", "animal", "fruit"))
_MOOD = {mood.english: mood for mood in MOODS}
_UNWILLING = ("tired", "busy", "sad", "angry")


def _frames(verbs: str, tense: Tense) -> tuple[Frame, ...]:
    """Return the frames of some verbs that take any subject, in one tense."""
    wanted = verb_bases(verbs)
    return tuple(
        frame._replace(tenses=frozenset({tense}))
        for frame in ACTIONS
        if frame.verb.base in wanted
        and frame.any_subject
        and tense in frame.tenses
        and not frame.any_object
        and frame.verb.particle not in ("for", "at")
    )


_HABITS = {
    "tired": _frames("sleep listen sit drink", "simple"),
    "sad": _frames("walk listen play read eat", "simple"),
    "happy": _frames("sing dance play make", "simple"),
    "busy": _frames("work drink", "simple"),
    "angry": _frames("walk", "simple"),
}
_PLANS = {
    "tired": _frames("sleep stay drink", "future"),
    "sad": _frames("listen walk dance play", "future"),
    "happy": _frames("sing dance make", "future"),
    "busy": _frames("work stay", "future"),
    "angry": _frames("leave stay walk", "future"),
}
_TIRING = _frames("work play go dance walk wash drive read make", "modal")
_BOUGHT = _frames("buy eat drink", "modal")
_WANTED = _frames("buy eat drink read visit", "modal")


def compound(rng: Random) -> Compound:
    """Draw two propositions and what joins them."""
    draw = choose(rng, (_dislike, _reason, _unwilling, _tastes, _although, _habit, _habit, _plan))
    return draw(rng)


def _noun_and_adjective(
    rng: Random, nouns: tuple[Noun, ...], words: frozenset[str]
) -> tuple[Noun, Adjective]:
    """Draw a noun and something to say of it that is among some words."""
    while True:
        noun = choose(rng, nouns)
        choices = [word for word in PREDICATES[noun] if word.english in words]
        if choices:
            return noun, choose(rng, choices)


def _dislike(rng: Random) -> Compound:
    """Draw "I do not want to buy the car because it is too expensive"."""
    frame = choose(rng, _BOUGHT)
    subject = sample_subject(rng, frame.subjects, True)
    noun, word = _noun_and_adjective(rng, frame.objects, _BAD | {"hot"})
    thing = _wanted_object(rng, frame, noun, subject)
    wish = Clause(frame, subject, thing, tense="modal", modal="want", negated=True)
    return Compound("because", wish, State(to_pronoun(thing), word, degree="too"))


def _reason(rng: Random) -> Compound:
    """Draw "I want to read this book because it is interesting"."""
    frame = choose(rng, _WANTED)
    subject = sample_subject(rng, frame.subjects, True)
    noun, word = _noun_and_adjective(rng, frame.objects, _GOOD)
    thing = _wanted_object(rng, frame, noun, subject)
    wish = Clause(frame, subject, thing, tense="modal", modal="want")
    return Compound("because", wish, State(to_pronoun(thing), word, degree=_degree(rng, word)))


def _wanted_object(rng: Random, frame: Frame, noun: Noun, subject: Participant) -> Nominal:
    """Draw a thing, which is not one's own if it is to be bought."""
    buying = frame.verb.base == "buy"
    return _without_adjectives(
        demonstrative_nominal(rng, noun) if buying else definite_nominal(rng, noun, subject)
    )


def _without_adjectives(thing: Nominal) -> Nominal:
    return thing._replace(adjectives=())


def _unwilling(rng: Random) -> Compound:
    """Draw "She does not want to dance because she is tired"."""
    subject = _person(rng)
    meaning = clause(rng, choose(rng, _TIRING), subject, negated=True)
    meaning = meaning._replace(modal="want", fronted=False)
    return Compound("because", meaning, State(to_pronoun(subject), _MOOD[choose(rng, _UNWILLING)]))


def _person(rng: Random) -> Participant:
    """Draw a person by a pronoun, a name or a tie."""
    subject = sample_subject(rng, PEOPLE, True)
    return choose(rng, NAMES) if is_indefinite(subject) else subject


def _tastes(rng: Random) -> Compound:
    """Draw "Paul likes coffee, but Marie does not like tea"."""
    one, two = _person(rng), _person(rng)
    liked, disliked = rng.sample(choose(rng, _TASTES), 2)
    if one == two:
        two = to_pronoun(two)
    hated = disliked in _HATE.objects and rng.random() < 0.5
    first = Clause(_LIKE, one, _general(liked))
    if hated:
        return Compound("but", first, Clause(_HATE, two, _general(disliked)))
    return Compound("but", first, Clause(_LIKE, two, _general(disliked), negated=True))


def _general(noun: Noun) -> Nominal:
    return Nominal(noun, "", noun.countable)


def _although(rng: Random) -> Compound:
    """Draw "The car is old, but it is fast"."""
    noun, good = _noun_and_adjective(rng, tuple(PREDICATES), _GOOD)
    while not any(word.english in _BAD for word in PREDICATES[noun]):
        noun, good = _noun_and_adjective(rng, tuple(PREDICATES), _GOOD)
    bad = choose(rng, [word for word in PREDICATES[noun] if word.english in _BAD])
    thing = _without_adjectives(definite_nominal(rng, noun))
    one, two = rng.sample((good, bad), 2)
    return Compound(
        "but", State(thing, one), State(to_pronoun(thing), two, degree=_degree(rng, two))
    )


def _degree(rng: Random, word: Adjective) -> str:
    return choose(rng, ("", "very")) if word.graded else ""


def _habit(rng: Random) -> Compound:
    """Draw "When she is sad, she listens to music"."""
    mood = choose(rng, MOODS)
    subject = _person(rng)
    meaning = clause(rng, choose(rng, _HABITS[mood.english]), to_pronoun(subject), negated=False)
    meaning = meaning._replace(time=None, fronted=False, often=None)
    return Compound("when", State(subject, mood), meaning)


def _plan(rng: Random) -> Compound:
    """Draw "If you are tired, we will stay at the hotel"."""
    mood = choose(rng, MOODS)
    subject = _person(rng)
    meaning = clause(rng, choose(rng, _PLANS[mood.english]), to_pronoun(subject), negated=False)
    return Compound(
        "if", State(subject, mood), meaning._replace(tense="future", fronted=False, time=None)
    )
