from grammar.corpus import align, realise_pair
from grammar.words import Word
from regard.data.phrasebook import AlignedPair
from regard.gallery.example_sentence import example_pair


def test_words_that_share_a_mark_are_all_linked():
    source = [Word("do", ("not",)), Word("not", ("not",)), Word("sleep", ("verb",)), Word("!")]
    target = [Word("ne", ("not",)), Word("dors", ("verb", "tense")), Word("pas", ("not",))]
    assert align(source, target) == ((0, 0), (0, 2), (1, 0), (1, 2), (2, 1))


def test_two_shared_marks_give_one_link():
    assert align([Word("of", ("a", "b"))], [Word("du", ("b", "a"))]) == ((0, 0),)


def test_pair_holds_both_sentences_their_words_and_links(m):
    meaning = m.act("eat", m.who("he"), m.thing("bread", "any"), negated=True)
    assert realise_pair(meaning, "fr") == AlignedPair(
        "He does not eat any bread.",
        "Il ne mange pas de pain.",
        ("He", "does", "not", "eat", "any", "bread", "."),
        ("Il", "ne", "mange", "pas", "de", "pain", "."),
        # does and not are ne and pas
        ((0, 0), (1, 1), (1, 3), (2, 1), (2, 3), (3, 2), (4, 4), (5, 5), (6, 6)),
    )


def test_example_sentence_of_the_gallery_is_aligned_as_the_grammar_aligns_it(m):
    meaning = m.act("sit", m.thing("cat"), place=m.at("on", m.thing("mat")))
    assert realise_pair(meaning, "fr") == example_pair()
