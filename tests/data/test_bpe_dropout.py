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
    bpe_dropout,
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


def drawn(text, skipped, count=1, seed=0):
    return list(BPEDropout(BOTH, skipped, Random(seed)).draw(text, count))


@given(st.one_of(st.sampled_from(TEXTS), st.text()))
def test_without_skipped_merges_a_cut_is_what_the_tokenizer_does(text):
    assert drawn(text, 0.0) == [BOTH.encode(text)]


@given(st.one_of(st.sampled_from(TEXTS), st.text(st.characters(exclude_categories=["Cs"]))))
def test_every_cut_is_the_same_text(text):
    assert {BOTH.decode(ids) for ids in drawn(text, 0.5, count=5)} == {text}


def test_with_all_merges_skipped_only_letters_are_left():
    (ids,) = drawn(TEXTS[0], 1.0)
    assert BOTH.convert_ids_to_tokens(ids) == list(f" {TEXTS[0]}")


def test_the_seed_decides():
    assert drawn(TEXTS[0], 0.3, 5, seed=1) == drawn(TEXTS[0], 0.3, 5, seed=1)
    assert drawn(TEXTS[0], 0.3, 5, seed=1) != drawn(TEXTS[0], 0.3, 5, seed=2)


@pytest.mark.parametrize("skipped", [0.1, 0.4])
def test_cuts_are_as_long_as_those_of_another_library(skipped):
    """What `tokenizers` draws for the same merges, with chances of its own."""
    vocabulary = {piece: n for n, piece in enumerate(BOTH.pieces)}
    other = Engine(BPE(vocabulary, list(BOTH.merges), dropout=skipped))
    word, times = " translations", 4000
    wanted = sum(len(other.encode(word).ids) for _ in range(times)) / times
    one = BPEDropout(BOTH, skipped, Random(0))
    found = sum(len(one._merged(word)) for _ in range(times)) / times
    assert len(BOTH.encode(word[1:])) + 0.3 < wanted  # there is something to tell apart
    assert found == pytest.approx(wanted, rel=0.05)


def test_a_word_that_was_cut_often_is_cut_as_before(monkeypatch):
    monkeypatch.setattr(bpe_dropout, "KEPT", 3)
    found = [tuple(ids) for ids in drawn("translations", 0.5, count=300)]
    assert set(found) == set(found[:3])
    assert len(set(found)) > 1


def test_each_pair_is_encoded_as_often_as_it_is_cut_and_its_links_follow(tmp_path):
    pair = Pair("the notation", "a translation", (((4, 12), (2, 13)),))
    settings = DataConfig(bpe_dropout_samples=6, bpe_dropout=0.4)
    some = encode_pairs(
        [pair, Pair("tea", "a")], JOINT, settings, tmp_path, PairBPEDropout(JOINT, settings, 0)
    )
    assert len(some) == 12
    assert len({tuple(some.pair(n)[1].tolist()) for n in range(6)}) > 1
    for number in range(6):
        source, target = (side.tolist() for side in some.pair(number))
        assert (BOTH.decode(source), BOTH.decode(target)) == (pair.source, pair.target)
        wanted = {
            (i, j)
            for i in overlapping(BOTH.offsets(source), (4, 12))
            for j in overlapping(BOTH.offsets(target), (2, 13))
        }
        assert {tuple(link) for link in some.links_of(number).tolist()} == wanted


def test_a_cut_that_is_too_long_to_learn_from_gives_way_to_the_usual_one():
    usual = (BOTH.encode(TEXTS[0]),) * 2
    longest = len(usual[0]) + 8
    pair, more = Pair(TEXTS[0], TEXTS[0]), {"bpe_dropout_samples": 50, "bpe_dropout": 0.2}
    unbound = list(PairBPEDropout(JOINT, DataConfig(**more), 0).draw(pair, usual))
    bound = list(PairBPEDropout(JOINT, DataConfig(**more, max_length=longest), 0).draw(pair, usual))
    too_long = [max(map(len, both)) > longest for both in unbound]
    assert 0 < sum(too_long) < 50
    assert bound == [usual if long else both for both, long in zip(unbound, too_long, strict=True)]


def test_of_a_text_without_end_the_cuts_of_the_first_words_are_kept(monkeypatch):
    monkeypatch.setattr(bpe_dropout, "WORDS", 3)
    monkeypatch.setattr(bpe_dropout, "KEPT", 2)
    one = BPEDropout(BOTH, 0.5, Random(0))
    text = "translations of rotations rotate relations"
    found = [tuple(ids) for _ in range(40) for ids in one.draw(text, 1)]
    assert {BOTH.decode(ids) for ids in found} == {text}
    assert len(one._known) == 3
    anew = {tuple(one._drawn(" relations")) for _ in range(40)}
    again = {tuple(one._drawn(" translations")) for _ in range(40)}
    assert len(again) <= 2 < len(anew)


@pytest.mark.parametrize(
    ("settings", "sentence"),
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
def test_settings_that_make_no_sense_are_refused(settings, sentence):
    with pytest.raises(RegardError, match=sentence):
        DataConfig(**settings)
