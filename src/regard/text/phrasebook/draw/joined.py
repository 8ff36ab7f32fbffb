"""Two propositions joined by because, but, when or if, drawn at random."""

from random import Random

from regard.text.phrasebook.draw.clauses import clause
from regard.text.phrasebook.draw.nominals import known, pick, someone
from regard.text.phrasebook.draw.states import PEOPLE
from regard.text.phrasebook.lexicon.adjectives import MOODS, PREDICATES, Adjective
from regard.text.phrasebook.lexicon.frames import ACTIONS, Frame
from regard.text.phrasebook.lexicon.nouns import NAMES, Noun
from regard.text.phrasebook.meaning import (
    Clause,
    Compound,
    Nominal,
    Participant,
    State,
    Tense,
    again,
)

_GOOD = frozenset(
    ["beautiful", "fast", "interesting", "delicious", "fresh", "sweet", "warm", "clean", "quiet"]
)
_BAD = frozenset(["expensive", "old", "dirty", "heavy", "cold", "small"])
_TASTES = tuple(frame for frame in ACTIONS if frame.verb.base in ("like", "hate"))
_MOOD = {mood.english: mood for mood in MOODS}
# what people do in a mood
_WHEN = {
    "tired": "sleep listen sit drink",
    "sad": "cry walk listen call play read eat",
    "happy": "sing dance laugh play make",
    "busy": "work drink",
    "angry": "walk cry clean",
}
_IF = {
    "tired": "sleep stay drink",
    "sad": "listen walk dance call buy",
    "happy": "sing dance buy travel",
    "busy": "work stay",
    "angry": "leave stay walk",
}
_TIRING = tuple(
    frame
    for frame in ACTIONS
    if frame.by_anyone
    and "modal" in frame.tenses
    and frame.verb.base
    in [
        "work",
        "play",
        "go",
        "dance",
        "clean",
        "swim",
        "travel",
        "walk",
        "wash",
        "study",
        "drive",
        "read",
    ]
)
_WANTED = tuple(
    frame
    for frame in ACTIONS
    if frame.by_anyone and frame.verb.base in ("buy", "eat", "drink", "read", "visit", "sell")
)
_UNWILLING = ("tired", "busy", "sad", "angry")


def _does(verbs: str, tense: Tense) -> tuple[Frame, ...]:
    wanted = set(verbs.split())
    return tuple(
        frame._replace(tenses=frozenset({tense}))
        for frame in ACTIONS
        if frame.verb.base in wanted
        and frame.by_anyone
        and tense in frame.tenses
        and not frame.to_anyone
        and frame.verb.particle != "for"
    )


_HABITS = {mood: _does(verbs, "simple") for mood, verbs in _WHEN.items()}
_PLANS = {mood: _does(verbs, "future") for mood, verbs in _IF.items()}


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
    frame = pick(chance, [frame for frame in _WANTED if frame.verb.base in ("buy", "eat", "drink")])
    subject = someone(chance, frame.subjects, True)
    noun, word = _judged(chance, frame.objects, _BAD | {"hot"})
    thing = _bare(known(chance, noun, subject))
    wish = Clause(frame, subject, thing, tense="modal", modal="want", negated=True)
    return Compound("because", wish, State(again(thing), word, degree="too"))


def _reason(chance: Random) -> Compound:
    """Draw "I want to read this book because it is interesting"."""
    frame = pick(chance, _WANTED)
    subject = someone(chance, frame.subjects, True)
    noun, word = _judged(chance, frame.objects, _GOOD)
    thing = _bare(known(chance, noun, subject))
    wish = Clause(frame, subject, thing, tense="modal", modal="want")
    return Compound("because", wish, State(again(thing), word, degree=_degree(chance)))


def _bare(thing: Nominal) -> Nominal:
    return thing._replace(adjectives=())


def _weary(chance: Random) -> Compound:
    """Draw "She does not want to dance because she is tired"."""
    frame = pick(chance, _TIRING)._replace(tenses=frozenset({"modal"}))
    subject = _person(chance)
    told = clause(chance, frame, subject)._replace(modal="want", negated=True, fronted=False)
    return Compound("because", told, State(again(subject), _MOOD[pick(chance, _UNWILLING)]))


def _person(chance: Random) -> Participant:
    """Draw a person by a pronoun, a name or a tie."""
    subject = someone(chance, PEOPLE, True)
    vague = isinstance(subject, Nominal) and subject.determiner in ("every", "all the", "many")
    return pick(chance, NAMES) if vague else subject


def _tastes(chance: Random) -> Compound:
    """Draw "Paul likes coffee, but Marie hates tea"."""
    first, second = _taste(chance, _person(chance)), _taste(chance, _person(chance))
    if first.subject == second.subject:
        second = second._replace(subject=again(second.subject))
    return Compound("but", first, second)


def _taste(chance: Random, subject: Participant) -> Clause:
    frame = pick(chance, _TASTES)
    noun = pick(chance, frame.objects)
    negated = frame.verb.base == "like" and chance.random() < 0.3
    return Clause(frame, subject, Nominal(noun, "", noun.counted), negated=negated)


def _although(chance: Random) -> Compound:
    """Draw "The car is old, but it is fast"."""
    noun, good = _judged(chance, tuple(PREDICATES), _GOOD)
    while not any(word.english in _BAD for word in PREDICATES[noun]):
        noun, good = _judged(chance, tuple(PREDICATES), _GOOD)
    bad = pick(chance, [word for word in PREDICATES[noun] if word.english in _BAD])
    thing = _bare(known(chance, noun))
    one, two = chance.sample((good, bad), 2)
    return Compound("but", State(thing, one), State(again(thing), two, degree=_degree(chance)))


def _degree(chance: Random) -> str:
    return pick(chance, ("", "very"))


def _habit(chance: Random) -> Compound:
    """Draw "When she is sad, she listens to music"."""
    mood = pick(chance, MOODS)
    subject = _person(chance)
    told = clause(chance, pick(chance, _HABITS[mood.english]), again(subject))
    told = told._replace(time=None, fronted=False, negated=False, often=None)
    return Compound("when", State(subject, mood), told)


def _plan(chance: Random) -> Compound:
    """Draw "If you are tired, we will stay at the hotel"."""
    mood = pick(chance, MOODS)
    subject = _person(chance)
    told = clause(chance, pick(chance, _PLANS[mood.english]), again(subject))
    return Compound("if", State(subject, mood), told._replace(fronted=False, time=None))
