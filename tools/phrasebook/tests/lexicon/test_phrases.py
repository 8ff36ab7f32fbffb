from grammar.lexicon.phrases import OFTEN, PLACES, PREPOSITIONS, TIMES


def test_numbers_join_the_words_of_a_phrase_with_their_counterparts():
    week = next(time for time in TIMES if time.english == (("last", "1"), ("week", "2")))
    assert week.french == (("la", "2"), ("semaine", "2"), ("dernière", "1"))
    assert week.chinese == (("上个", "1"), ("星期", "2"))


def test_phrase_without_numbers_is_aligned_as_a_whole():
    tonight = next(time for time in TIMES if time.english == (("tonight", "1"),))
    assert tonight.french == (("ce", "1"), ("soir", "1"))


def test_every_alignment_number_occurs_in_all_languages():
    for adverb in (*TIMES, *OFTEN.values()):
        sides = [
            set("".join(numbers for _, numbers in side))
            for side in (adverb.english, adverb.french, adverb.chinese)
        ]
        assert sides[0] == sides[1] == sides[2], adverb


def test_every_place_has_nouns_and_known_prepositions():
    for kind, choices in PLACES.items():
        for nouns, prepositions in choices:
            assert nouns, kind
            assert set(prepositions) <= set(PREPOSITIONS), kind
            assert all(noun.countable for noun in nouns)
