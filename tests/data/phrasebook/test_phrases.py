from regard.data.phrasebook import english, french
from regard.data.phrasebook.phrases import Phrase, links, phrase
from regard.data.phrasebook.words import Word


def test_words_that_share_a_mark_are_linked_all_with_all():
    source = [Word("do", ("not",)), Word("not", ("not",)), Word("sleep", ("verb",)), Word("!")]
    target = [Word("ne", ("not",)), Word("dors", ("verb", "tense")), Word("pas", ("not",))]
    assert links(source, target) == ((0, 0), (0, 2), (1, 0), (1, 2), (2, 1))


def test_two_marks_in_common_are_one_link():
    assert links([Word("of", ("a", "b"))], [Word("du", ("b", "a"))]) == ((0, 0),)


def test_a_phrase_holds_both_sentences_their_words_and_their_links(m):
    meaning = m.act("eat", m.who("he"), m.thing("bread", "any"), negated=True)
    assert phrase(meaning, "fr", french.sentence) == Phrase(
        "He does not eat any bread.",
        "Il ne mange pas de pain.",
        ("He", "does", "not", "eat", "any", "bread", "."),
        ("Il", "ne", "mange", "pas", "de", "pain", "."),
        # does and not are ne and pas
        ((0, 0), (1, 1), (1, 3), (2, 1), (2, 3), (3, 2), (4, 4), (5, 5), (6, 6)),
    )
    assert [word.text for word in english.sentence(meaning)][-1] == "."
