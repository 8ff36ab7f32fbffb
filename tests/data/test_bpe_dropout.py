from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Engine
from tokenizers.models import BPE

from regard.config import DataConfig
from regard.data import (
    BPEDropout,
    Pair,
    PairBPEDropout,
    Tokenizers,
    encode_pairs,
    overlapping,
    train_tokenizer,
)
from regard.errors import RegardError

TEXTS = [
    "the translator translates translations",
    "a relation of nations is international",
    "two rotations rotate the notation",
    "我喜欢茶 and translated tea",
]
BOTH = train_tokenizer(TEXTS * 3, "bpe", 400)
JOINT = Tokenizers(BOTH, BOTH)


def sample(text, dropout, count=1, seed=0, **limits):
    return list(BPEDropout(BOTH, dropout, Random(seed), **limits).sample(text, count))


@given(st.one_of(st.sampled_from(TEXTS), st.text()))
def test_without_dropout_the_segmentation_is_the_tokenizers(text):
    assert sample(text, 0.0) == [BOTH.encode(text)]


@given(st.one_of(st.sampled_from(TEXTS), st.text(st.characters(exclude_categories=["Cs"]))))
def test_every_segmentation_decodes_to_the_text(text):
    assert {BOTH.decode(ids) for ids in sample(text, 0.5, count=5)} == {text}


def test_with_dropout_1_only_characters_are_left():
    (ids,) = sample(TEXTS[0], 1.0)
    assert BOTH.convert_ids_to_tokens(ids) == list(f" {TEXTS[0]}")


def test_equal_seeds_give_equal_segmentations():
    assert sample(TEXTS[0], 0.3, 5, seed=1) == sample(TEXTS[0], 0.3, 5, seed=1)
    assert sample(TEXTS[0], 0.3, 5, seed=1) != sample(TEXTS[0], 0.3, 5, seed=2)


@pytest.mark.parametrize("dropout", [0.1, 0.4])
def test_mean_length_agrees_with_dropout_of_the_tokenizers_library(dropout):
    vocabulary = {piece: n for n, piece in enumerate(BOTH.pieces)}
    other = Engine(BPE(vocabulary, list(BOTH.merges), dropout=dropout))
    word, times = " translations", 4000
    expected = sum(len(other.encode(word).ids) for _ in range(times)) / times
    samples = sample(word[1:], dropout, times, samples_per_word=times)
    assert len(BOTH.encode(word[1:])) + 0.3 < expected  # dropout makes a difference
    assert sum(map(len, samples)) / times == pytest.approx(expected, rel=0.05)


def test_full_cache_of_a_word_is_reused():
    samples = [tuple(ids) for ids in sample("translations", 0.5, count=300, samples_per_word=3)]
    assert set(samples) == set(samples[:3])
    assert len(set(samples)) > 1


def test_each_pair_is_encoded_once_per_sample_and_links_follow(tmp_path):
    pair = Pair("the notation", "a translation", (((4, 12), (2, 13)),))
    settings = DataConfig(bpe_dropout_samples=6, bpe_dropout=0.4)
    encoded = encode_pairs(
        [pair, Pair("tea", "a")], JOINT, settings, tmp_path, PairBPEDropout(JOINT, settings, 0)
    )
    assert len(encoded) == 12
    assert len({tuple(encoded.pair(n)[1].tolist()) for n in range(6)}) > 1
    for number in range(6):
        source, target = (side.tolist() for side in encoded.pair(number))
        assert (BOTH.decode(source), BOTH.decode(target)) == (pair.source, pair.target)
        expected = {
            (i, j)
            for i in overlapping(BOTH.offsets(source), (4, 12))
            for j in overlapping(BOTH.offsets(target), (2, 13))
        }
        assert {tuple(link) for link in encoded.links_of(number).tolist()} == expected


def test_overlong_sample_is_replaced_by_the_default_segmentation():
    default = (BOTH.encode(TEXTS[0]),) * 2
    max_length = len(default[0]) + 8
    pair, more = Pair(TEXTS[0], TEXTS[0]), {"bpe_dropout_samples": 50, "bpe_dropout": 0.2}
    unlimited = list(PairBPEDropout(JOINT, DataConfig(**more), 0).sample(pair, default))
    limited = list(
        PairBPEDropout(JOINT, DataConfig(**more, max_length=max_length), 0).sample(pair, default)
    )
    is_too_long = [max(map(len, both)) > max_length for both in unlimited]
    assert 0 < sum(is_too_long) < 50
    assert limited == [
        default if long else both for both, long in zip(unlimited, is_too_long, strict=True)
    ]


def test_segmentations_of_words_beyond_the_cache_are_not_repeated():
    dropout = BPEDropout(BOTH, 0.5, Random(0), samples_per_word=2, max_cached_words=3)
    first = "translations of rotations"
    assert {BOTH.decode(ids) for ids in dropout.sample(first, 40)} == {first}
    cached = {tuple(ids) for ids in dropout.sample("translations", 40)}
    fresh = {tuple(ids) for ids in dropout.sample("relations", 40)}
    assert len(cached) <= 2 < len(fresh)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"bpe_dropout_samples": 2, "tokenizer": "words"},
            "data.bpe_dropout_samples must be 0 unless data.tokenizer is bpe",
        ),
        ({"bpe_dropout_samples": -1}, "data.bpe_dropout_samples must be 0 or more, but it is -1"),
        ({"bpe_dropout": 1.5}, "data.bpe_dropout must be from 0 to 1, but it is 1.5"),
        ({"bpe_dropout": float("nan")}, "data.bpe_dropout must be"),
    ],
)
def test_invalid_settings_are_refused(settings, message):
    with pytest.raises(RegardError, match=message):
        DataConfig(**settings)
