from random import Random

from grammar.meaning import Greeting, Nominal, final_mark
from grammar.sampling.messages import greeting, message, noun_phrase


def many(draw, count=400):
    rng = Random(12)
    return [draw(rng) for _ in range(count)]


def test_messages_are_sentences_noun_phrases_and_greetings():
    meanings = [meaning for meaning, _ in many(message)]
    for kind in (Nominal, Greeting):
        assert sum(isinstance(meaning, kind) for meaning in meanings) > 40
    assert sum(not isinstance(meaning, Nominal | Greeting) for meaning in meanings) > 100


def test_every_message_that_is_a_sentence_lacks_its_capital_or_its_final_mark():
    for meaning, style in many(message):
        if not isinstance(meaning, Nominal | Greeting):
            assert not (style.capital and style.final_mark)


def test_noun_phrases_name_no_language():
    for phrase in many(noun_phrase):
        assert "language" not in phrase.noun.kinds


def test_greeting_addresses_a_name_a_friend_of_the_speaker_or_nobody():
    addressees = [one.addressee for one in many(greeting)]
    assert None in addressees
    friends = [who for who in addressees if isinstance(who, Nominal)]
    assert friends and {who.determiner for who in friends} == {"my"}


def test_a_question_is_never_exclaimed():
    marks = {one.formula.is_question: set() for one in many(greeting)}
    for one in many(greeting):
        marks[one.formula.is_question].add(final_mark(one))
    assert marks == {True: {"?"}, False: {".", "!"}}
