"""Shorthand to build meanings, and the generated corpus."""

from functools import cache
from types import SimpleNamespace

import pytest

from grammar.corpus import REALISERS, generate_pairs
from grammar.lexicon.adjectives import ADJECTIVES, MOODS
from grammar.lexicon.frames import ACTIONS, GIFTS
from grammar.lexicon.nouns import NAMES, NOUN, PORTIONS
from grammar.lexicon.phrases import OFTEN, TIMES
from grammar.lexicon.verbs import VERB
from grammar.meaning import Clause, Nominal, Place, Pronoun, Report, Sequel, State
from grammar.words import WRITTEN, join_words
from regard.data.phrasebook import SIZE

TIME = {" ".join(word for word, _ in time.english): time for time in TIMES}


def adjective(word, noun):
    return next(one for one in ADJECTIVES + MOODS if one.english == word and one.fits(noun))


def thing(noun, determiner="the", plural=False, adjectives="", owner=None, relative=None):
    found = NOUN[noun]
    words = tuple(adjective(word, found) for word in adjectives.split())
    owner = name(owner) if owner else None
    return Nominal(found, "'s" if owner else determiner, plural, words, owner, None, relative)


def portion(holder, determiner, content, plural=False):
    found = next(noun for noun in PORTIONS if noun.singular == holder)
    return Nominal(found, determiner, plural, content=NOUN[content])


def name(called):
    return next(one for one in NAMES if one.name == called)


def frame(verb, object, recipient):
    """Find the frame of a verb that takes this object, and someone who receives it or not."""
    noun = object.content or object.noun if isinstance(object, Nominal) else None
    return next(
        one
        for one in ACTIONS + GIFTS
        if one.verb == VERB[verb]
        and bool(one.recipient) == bool(recipient)
        and (bool(one.objects) if object else not one.objects)
        and (noun is None or noun in one.objects)
    )


def act(verb, subject, object=None, tense="simple", **rest):
    for key, table in (("time", TIME), ("often", OFTEN)):
        if key in rest:
            rest[key] = table[rest[key]]
    found = frame(verb, object, rest.get("recipient"))
    return Clause(found, subject, object, tense=tense, **rest)


def being(subject, word=None, **rest):
    """Say that someone is so; the word is an adjective, a profession or a place."""
    if isinstance(word, str):
        noun = subject.noun if isinstance(subject, Nominal) and subject.noun else NOUN["woman"]
        word = NOUN[word] if word in NOUN else adjective(word, noun)
    if "time" in rest:
        rest["time"] = TIME[rest["time"]]
    return State(subject, word, **rest)


def report(subject, verb, content):
    return Report(subject, VERB[verb], content)


def sequel(first, verb):
    return Sequel(first, frame(verb, first.object, None))


def say(meaning, language, style=WRITTEN):
    return join_words([word.text for word in REALISERS[language](meaning, style)], language)


@pytest.fixture(scope="session")
def m():
    """Functions that build meanings."""
    return SimpleNamespace(
        thing=thing,
        portion=portion,
        name=name,
        who=Pronoun,
        at=Place,
        act=act,
        being=being,
        report=report,
        sequel=sequel,
        say=say,
        adjective=adjective,
    )


@cache
def _generate(language):
    return generate_pairs(language, SIZE)


@pytest.fixture(scope="session")
def generated():
    """Return a function that gives all pairs of a language, generated once."""
    return _generate
