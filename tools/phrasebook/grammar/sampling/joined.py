"""Two propositions joined by because, but, when or if, drawn at random."""

from random import Random

from grammar.lexicon.adjectives import (
    MOODS,
    PREDICATES,
    Adjective,
    adjectives_called,
)
from grammar.lexicon.frames import ACTIONS, Frame
from grammar.lexicon.nouns import NAMES, Noun, nouns_of
from grammar.lexicon.verbs import verbs_called
from grammar.meaning import (
    Clause,
    Compound,
    Nominal,
    Participant,
    State,
    Tense,
    again,
)
from grammar.sampling.clauses import clause
from grammar.sampling.nominals import known, pick, pointed, someone, vague
from grammar.sampling.states import PEOPLE

_GOOD = adjectives_called("beautiful fast interesting delicious fresh clean")
_BAD = adjectives_called("expensive old dirty heavy cold small")
_LIKE, _HATE = (
    next(frame for frame in ACTIONS if frame.verb.base == verb) for verb in ("like", "hate")
)
_TASTES = tuple(nouns_of(kinds) for kinds in ("meal", "drink", "animal", "fruit"))
_MOOD = {mood.english: mood for mood in MOODS}
_UNWILLING = ("tired", "busy", "sad", "angry")


def _frames(verbs: str, tense: Tense) -> tuple[Frame, ...]:
    """Find the frames of some verbs that anyone may do, in one tense."""
    wanted = verbs_called(verbs)
    return tuple(
        frame._replace(tenses=frozenset({tense}))
        for frame in ACTIONS
        if frame.verb.base in wanted
        and frame.by_anyone
        and tense in frame.tenses
        and not frame.to_anyone
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


def joined(chance: Random) -> Compound:
    """Draw two propositions and what joins them."""
    draw = pick(chance, (_dislike, _reason, _weary, _tastes, _although, _habit, _habit, _plan))
    return draw(chance)


def _judged(
    chance: Random, nouns: tuple[Noun, ...], words: frozenset[str]
) -> tuple[Noun, Adjective]:
    """Draw a noun and something to say of it that is among some words."""
    while True:
        noun = pick(chance, nouns)
        choices = [word for word in PREDICATES[noun] if word.english in words]
        if choices:
            return noun, pick(chance, choices)


def _dislike(chance: Random) -> Compound:
    """Draw "I do not want to buy the car because it is too expensive"."""
    frame = pick(chance, _BOUGHT)
    subject = someone(chance, frame.subjects, True)
    noun, word = _judged(chance, frame.objects, _BAD | {"hot"})
    thing = _wanted(chance, frame, noun, subject)
    wish = Clause(frame, subject, thing, tense="modal", modal="want", negated=True)
    return Compound("because", wish, State(again(thing), word, degree="too"))


def _reason(chance: Random) -> Compound:
    """Draw "I want to read this book because it is interesting"."""
    frame = pick(chance, _WANTED)
    subject = someone(chance, frame.subjects, True)
    noun, word = _judged(chance, frame.objects, _GOOD)
    thing = _wanted(chance, frame, noun, subject)
    wish = Clause(frame, subject, thing, tense="modal", modal="want")
    return Compound("because", wish, State(again(thing), word, degree=_degree(chance, word)))


def _wanted(chance: Random, frame: Frame, noun: Noun, subject: Participant) -> Nominal:
    """Draw a thing, which is not one's own if it is to be bought."""
    buying = frame.verb.base == "buy"
    return _bare(pointed(chance, noun) if buying else known(chance, noun, subject))


def _bare(thing: Nominal) -> Nominal:
    return thing._replace(adjectives=())


def _weary(chance: Random) -> Compound:
    """Draw "She does not want to dance because she is tired"."""
    subject = _person(chance)
    told = clause(chance, pick(chance, _TIRING), subject, negated=True)
    told = told._replace(modal="want", fronted=False)
    return Compound("because", told, State(again(subject), _MOOD[pick(chance, _UNWILLING)]))


def _person(chance: Random) -> Participant:
    """Draw a person by a pronoun, a name or a tie."""
    subject = someone(chance, PEOPLE, True)
    return pick(chance, NAMES) if vague(subject) else subject


def _tastes(chance: Random) -> Compound:
    """Draw "Paul likes coffee, but Marie does not like tea"."""
    one, two = _person(chance), _person(chance)
    liked, disliked = chance.sample(pick(chance, _TASTES), 2)
    if one == two:
        two = again(two)
    hated = disliked in _HATE.objects and chance.random() < 0.5
    first = Clause(_LIKE, one, _general(liked))
    if hated:
        return Compound("but", first, Clause(_HATE, two, _general(disliked)))
    return Compound("but", first, Clause(_LIKE, two, _general(disliked), negated=True))


def _general(noun: Noun) -> Nominal:
    return Nominal(noun, "", noun.counted)


def _although(chance: Random) -> Compound:
    """Draw "The car is old, but it is fast"."""
    noun, good = _judged(chance, tuple(PREDICATES), _GOOD)
    while not any(word.english in _BAD for word in PREDICATES[noun]):
        noun, good = _judged(chance, tuple(PREDICATES), _GOOD)
    bad = pick(chance, [word for word in PREDICATES[noun] if word.english in _BAD])
    thing = _bare(known(chance, noun))
    one, two = chance.sample((good, bad), 2)
    return Compound("but", State(thing, one), State(again(thing), two, degree=_degree(chance, two)))


def _degree(chance: Random, word: Adjective) -> str:
    return pick(chance, ("", "very")) if word.graded else ""


def _habit(chance: Random) -> Compound:
    """Draw "When she is sad, she listens to music"."""
    mood = pick(chance, MOODS)
    subject = _person(chance)
    told = clause(chance, pick(chance, _HABITS[mood.english]), again(subject), negated=False)
    told = told._replace(time=None, fronted=False, often=None)
    return Compound("when", State(subject, mood), told)


def _plan(chance: Random) -> Compound:
    """Draw "If you are tired, we will stay at the hotel"."""
    mood = pick(chance, MOODS)
    subject = _person(chance)
    told = clause(chance, pick(chance, _PLANS[mood.english]), again(subject), negated=False)
    return Compound(
        "if", State(subject, mood), told._replace(tense="future", fronted=False, time=None)
    )
