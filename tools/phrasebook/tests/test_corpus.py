"""Properties of 20,000 generated pairs per language, and the data files made of them."""

import gzip
import random
import re
import zlib

import pytest

from generate import EMBEDDED, data_files
from grammar.corpus import HELD_OUT, generate_pairs
from grammar.lexicon.nouns import NAMES
from grammar.words import join_words, split_words
from regard.data.phrasebook import LANGUAGES, SIZE, load_phrasebook

NAME_WORDS = {name.name for name in NAMES} | {"Monday"}


@pytest.fixture(params=LANGUAGES)
def corpus(request, generated):
    return request.param, generated(request.param)


@pytest.mark.parametrize("language", LANGUAGES)
def test_equal_seeds_give_equal_pairs_and_other_seeds_give_others(language):
    pairs = generate_pairs(language, 60, seed=3)
    assert pairs == generate_pairs(language, 60, seed=3)
    assert pairs[:20] == generate_pairs(language, 20, seed=3)
    assert len({*pairs} & {*generate_pairs(language, 60, seed=4)}) < 10
    assert generate_pairs(language, 0) == []


def test_generation_leaves_the_global_random_state_alone():
    random.seed(5)
    expected = random.random()
    random.seed(5)
    generate_pairs("fr", 50)
    assert random.random() == expected


def test_embedded_files_are_what_the_generator_writes(corpus):
    language, pairs = corpus
    for name, content in data_files(language, pairs).items():
        embedded = (EMBEDDED / name).read_bytes()
        assert gzip.decompress(embedded) == gzip.decompress(content)
        if "ng" not in zlib.ZLIB_RUNTIME_VERSION:  # zlib-ng compresses to other bytes
            assert embedded == content


def test_loader_returns_the_generated_pairs_in_order(corpus):
    language, pairs = corpus
    book = load_phrasebook(language)
    assert [*book.valid, *book.test, *book.train] == pairs


def test_no_sentence_occurs_twice_in_either_language(corpus):
    _, pairs = corpus
    assert len(pairs) == SIZE
    assert len({pair.source for pair in pairs}) == SIZE
    assert len({pair.target for pair in pairs}) == SIZE


def test_words_join_to_the_sentence_and_split_again(corpus):
    language, pairs = corpus
    for pair in pairs[::10]:
        assert join_words(pair.source_words, "en") == pair.source
        assert join_words(pair.target_words, language) == pair.target
        assert split_words(pair.source, "en") == pair.source_words
        if language == "fr":
            assert split_words(pair.target, "fr") == pair.target_words


def test_links_are_sorted_distinct_and_within_the_sentences(corpus):
    for pair in corpus[1]:
        assert list(pair.links) == sorted(set(pair.links))
        assert all(
            0 <= i < len(pair.source_words) and 0 <= j < len(pair.target_words)
            for i, j in pair.links
        )


# words that may be unaligned: articles, auxiliaries, commas, the "that" of reported speech
UNALIGNED = {
    "fr": ({"do", "does"}, set()),
    "zh": (
        {"the", "a", "an", "any", "of", "at", "that", ",", "is", "are", "am", "was", "were"}
        | {"do", "does", "did"},
        {"，"},
    ),
}


def test_every_word_but_function_words_is_aligned(corpus):
    language, pairs = corpus
    source_unaligned, target_unaligned = UNALIGNED[language]
    for pair in pairs:
        source = {i for i, _ in pair.links}
        target = {j for _, j in pair.links}
        for i, word in enumerate(pair.source_words):
            assert i in source or word.lower() in source_unaligned, pair
        for j, word in enumerate(pair.target_words):
            assert j in target or word in target_unaligned, pair


def test_most_words_are_aligned_and_few_to_several(corpus):
    language, pairs = corpus
    linked = sum(len({i for i, _ in pair.links}) for pair in pairs)
    total = sum(len(pair.source_words) for pair in pairs)
    links = sum(len(pair.links) for pair in pairs)
    assert linked / total > {"fr": 0.99, "zh": 0.87}[language]
    assert links / total < 1.35


def test_final_punctuation_is_aligned(corpus):
    for pair in corpus[1]:
        if pair.source[-1] not in ".?!":
            continue
        assert pair.links[-1] == (len(pair.source_words) - 1, len(pair.target_words) - 1)


def test_word_order_differs_in_many_pairs(corpus):
    language, pairs = corpus
    crossing = sum(_crosses(pair.links) for pair in pairs)
    assert crossing / len(pairs) > {"fr": 0.45, "zh": 0.6}[language]


def _crosses(links):
    return any(i < k and j > n for i, j in links for k, n in links)


def test_sentence_lengths_vary(corpus):
    lengths = [len(pair.source_words) for pair in corpus[1]]
    assert min(lengths) <= 4
    assert max(lengths) <= 26
    assert 8 < sum(lengths) / len(lengths) < 11
    assert sum(length >= 12 for length in lengths) / len(lengths) > 0.15


def test_vocabulary_is_small(corpus):
    language, pairs = corpus
    source = {word.lower() for pair in pairs for word in pair.source_words}
    target = {word.lower() for pair in pairs for word in pair.target_words}
    assert 350 < len(source) < 520
    assert len(target) < {"fr": 950, "zh": 400}[language]


def test_held_out_pairs_start_with_a_capital_and_end_with_punctuation(corpus):
    language, pairs = corpus
    for pair in pairs[:HELD_OUT]:
        assert pair.source[0].isupper() and pair.source[-1] in ".?"
        assert pair.target[-1] in {"fr": ".?", "zh": "。？"}[language]
        assert (pair.source[-1] == "?") == (pair.target[-1] in "?？")
        if language == "fr":
            assert pair.target[0].isupper()


def test_both_sides_of_a_message_have_the_same_capital_and_final_mark(corpus):
    language, pairs = corpus
    marks = str.maketrans("。？！", ".?!")
    for pair in pairs:
        last = pair.target[-1].translate(marks)
        assert pair.source[-1] == last or not {pair.source[-1], last} & {*".?!"}, pair
        if language == "fr":
            same_case = pair.source[0].isupper() == pair.target[0].isupper()
            assert same_case or pair.source_words[0] in NAME_WORDS, pair


def test_about_a_tenth_of_the_training_pairs_are_messages(corpus):
    training = corpus[1][HELD_OUT:]
    informal = [p for p in training if p.source[0].islower() or p.source[-1] not in ".?!"]
    assert 0.06 < len(informal) / len(training) < 0.15
    greetings = [pair for pair in training if pair.source.lower().startswith("hello")]
    assert len(greetings) > 10


WRONG_ENGLISH = re.compile(
    r"\ba [aeio]|\ban [^aeiou]|\b(he|she|it) (do|are)\b|\b(I|we|they) (is|does|has)\b"
    r"|^(two|three|four|five|six|ten) \w+ (is|does|was)\b"
    r"|\bcan not\b|\bthat that\b|  | [.,?]",
    re.I,
)


def test_english_agreement_and_spacing(corpus):
    for pair in corpus[1]:
        assert not WRONG_ENGLISH.search(pair.source), pair.source


def test_every_french_ne_has_its_pas(generated):
    wrong = re.compile(r"\b(ne |n')(?!.*\b(pas|jamais)\b)", re.I)
    for phrase in generated("fr"):
        assert not wrong.search(phrase.target), phrase.target
        assert len(re.findall(r"\b(?:ne |n')", phrase.target)) == len(
            re.findall(r"\b(?:pas|jamais)\b", phrase.target)
        )


def test_chinese_time_comes_before_the_verb(generated):
    for phrase in generated("zh"):
        words = phrase.target_words
        if "昨天" in words and "了" in words and "，" not in words and "的" not in words:
            assert words.index("昨天") < words.index("了"), phrase.target


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_grammar_generates_at_least_100_000_distinct_pairs(language):
    pairs = generate_pairs(language, 100_000)
    assert len({pair.source for pair in pairs}) == 100_000
    assert len({pair.target for pair in pairs}) == 100_000
