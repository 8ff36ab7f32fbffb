from random import Random

from grammar.lexicon.frames import ACTIONS
from grammar.meaning import Nominal, Pronoun
from grammar.sampling.nominals import DEFINITE
from grammar.sampling.objects import sample_object, under_negation


def objects(verb, negated=False, usual=False, count=80):
    rng = Random(5)
    frames = [frame for frame in ACTIONS if frame.verb.base == verb]
    return [
        sample_object(rng, frame, Pronoun("I"), usual, negated)
        for frame in frames
        for _ in range(count)
    ]


def test_objects_are_of_the_kinds_that_the_verb_takes():
    for frame in ACTIONS:
        drawn = sample_object(Random(2), frame, Pronoun("she"), False, False)
        if isinstance(drawn, Nominal):
            assert (drawn.content or drawn.noun) in frame.objects or frame.any_object
        assert (drawn is None) == (not frame.objects)


def test_instruments_and_trains_are_the_ones_we_know():
    assert {one.determiner for one in objects("play") if one} == {"the"}


def test_negated_object_has_no_numeral():
    for verb in ("eat", "buy", "have", "sell"):
        determiners = {one.determiner for one in objects(verb, negated=True)}
        assert determiners <= DEFINITE | {"a", "any", ""}


def test_one_likes_things_in_general():
    drawn = objects("like")
    assert sum(one.determiner == "" for one in drawn) > len(drawn) / 2


def test_one_does_not_buy_what_one_has():
    assert not {one.determiner for one in objects("buy")} & {"my", "'s"}


def test_portion_under_negation_is_its_content(m):
    assert under_negation(m.portion("cup", "a", "tea"), usual=False) == m.thing("tea", "any")
    assert under_negation(m.thing("cat", "two", True), usual=False) == m.thing("cat", "any", True)
    assert under_negation(m.thing("cat", "a"), usual=True) == m.thing("cat", "", True)
    assert under_negation(m.thing("cat", "my"), usual=False) == m.thing("cat", "my")
