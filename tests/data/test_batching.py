import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.data import (
    BOS,
    EOS,
    PAD,
    Batch,
    EncodedPairs,
    batch_by_length,
    collate,
    pad_sequences,
    shard,
)


def encoded(pairs, links=()):
    """Encode pairs of token lists, as if they had been read from files."""
    columns = []
    for side in ([pair[0] for pair in pairs], [pair[1] for pair in pairs], list(links)):
        side = side or [[]] * len(pairs)
        numbers = np.array([number for some in side for number in some], dtype=np.uint16)
        starts = np.cumsum([0, *(len(some) for some in side)])
        columns += [numbers, starts]
    return EncodedPairs(*columns, dropped={})


def of_lengths(lengths):
    return encoded([([5] * source, [7] * target) for source, target in lengths])


def realistic(pairs=29_000):
    """Lengths like those of Multi30k in English and German, 8000 pieces: means and spreads."""
    chance = np.random.default_rng(3)
    source = np.clip(chance.lognormal(2.61, 0.32, pairs), 1, 128).astype(int)
    target = np.clip(source * chance.normal(1.04, 0.19, pairs), 1, 128)
    starts = [np.concatenate([[0], np.cumsum(some)]) for some in (source, target.astype(int))]
    tokens = [np.full(some[-1], 9, dtype=np.uint16) for some in starts]
    none = np.zeros(0, dtype=np.uint16), np.zeros(pairs + 1, dtype=np.int64)
    return EncodedPairs(tokens[0], starts[0], tokens[1], starts[1], *none, dropped={})


CAPTIONS = realistic()
some_lengths = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), max_size=40)


@given(some_lengths, st.integers(1, 200), st.integers(0, 5), st.integers(0, 5))
def test_every_pair_comes_exactly_once_per_epoch(lengths, budget, seed, epoch):
    batches = batch_by_length(of_lengths(lengths), budget, seed, epoch)
    assert sorted(row for rows in batches for row in rows) == list(range(len(lengths)))
    assert all(len(rows) for rows in batches)


@given(some_lengths, st.integers(1, 200), st.integers(0, 5))
def test_no_batch_is_beyond_the_budget_but_a_pair_that_is(lengths, budget, epoch):
    pairs = of_lengths(lengths)
    for rows in batch_by_length(pairs, budget, 0, epoch):
        batch = collate(pairs, rows)
        assert max(batch.source.numel(), batch.targets.numel()) <= budget or len(rows) == 1


@given(some_lengths, st.integers(1, 200), st.integers(0, 5), st.integers(0, 5))
def test_seed_and_epoch_tell_the_order(lengths, budget, seed, epoch):
    one, other = (batch_by_length(of_lengths(lengths), budget, seed, epoch) for _ in range(2))
    assert [rows.tolist() for rows in one] == [rows.tolist() for rows in other]


def contents(batches):
    return {tuple(sorted(rows.tolist())) for rows in batches}


def test_each_epoch_and_each_seed_has_other_batches_in_another_order():
    one = batch_by_length(CAPTIONS, 4096, seed=1, epoch=0)
    for other in (
        batch_by_length(CAPTIONS, 4096, seed=1, epoch=1),
        batch_by_length(CAPTIONS, 4096, seed=2, epoch=0),
    ):
        assert [rows.tolist() for rows in one] != [rows.tolist() for rows in other]
        assert len(contents(one) & contents(other)) < len(one) / 4, "not the same ones again"


def test_each_epoch_cuts_at_other_lengths():
    sizes = [
        sorted(map(len, batch_by_length(CAPTIONS, 4096, seed=1, epoch=epoch))) for epoch in range(2)
    ]
    assert sizes[0] != sizes[1]


def test_the_order_has_nothing_to_do_with_length():
    lengths = CAPTIONS.lengths[1]
    means = [lengths[rows].mean() for rows in batch_by_length(CAPTIONS, 4096, 0, 0)]
    assert abs(np.corrcoef(means[1:], means[:-1])[0, 1]) < 0.4


@pytest.mark.parametrize("epoch", [0, 1])
def test_padding_is_less_than_five_percent_of_all_batches(epoch):
    indices = batch_by_length(CAPTIONS, 4096, 0, epoch)
    batches = [collate(CAPTIONS, rows) for rows in indices]
    cells = sum(batch.source.numel() + batch.targets.numel() for batch in batches)
    tokens = sum(int(batch.lengths.sum()) + batch.target_tokens for batch in batches)
    assert 1 - tokens / cells < 0.05
    # and batches are as full as the budget allows
    assert len(batches) < 1.08 * np.maximum(*CAPTIONS.lengths).sum() / 4096


def test_a_batch_by_hand():
    pairs = encoded([([5, 6, 7], [8]), ([9], [4, 5, 6, 7])])
    batch = collate(pairs, np.array([1, 0]))
    assert batch.source.tolist() == [[9, PAD, PAD], [5, 6, 7]]
    assert batch.lengths.tolist() == [1, 3]
    assert batch.inputs.tolist() == [[BOS, 4, 5, 6, 7], [BOS, 8, *[PAD] * 3]]
    assert batch.targets.tolist() == [[4, 5, 6, 7, EOS], [8, EOS, *[PAD] * 3]]
    assert batch.links is None
    assert batch.target_tokens == 7
    assert {part.dtype for part in batch[:4]} == {torch.int64}


@given(some_lengths.filter(bool))
def test_targets_are_the_inputs_one_position_on(lengths):
    pairs = of_lengths(lengths)
    batch = collate(pairs, np.arange(len(pairs)))
    assert (batch.inputs[:, 0] == BOS).all()
    later, told = batch.inputs[:, 1:], batch.targets[:, :-1]
    assert later[later != PAD].equal(told[later != PAD])
    assert (batch.targets == EOS).sum(dim=1).tolist() == [1] * len(pairs)
    assert batch.target_tokens == sum(target + 1 for _, target in lengths)


def test_links_mark_the_source_of_each_target_after_the_start():
    pairs = encoded([([5, 6, 7], [8, 9]), ([5], [6])], links=[[0, 1, 2, 0], []])
    links = collate(pairs, np.array([0, 1]), linked=True).links
    assert links.shape == (2, 3, 3)
    assert links.nonzero().tolist() == [[0, 1, 2], [0, 2, 0]]
    assert links.sum() == 2


def test_a_batch_moves_with_all_its_parts():
    pairs = encoded([([5], [6, 7])], links=[[0, 1]])
    for linked in (False, True):
        moved = collate(pairs, np.array([0]), linked).to(torch.device("meta"))
        assert isinstance(moved, Batch)
        assert {part.device.type for part in moved if part is not None} == {"meta"}
        assert (moved.links is None) != linked


@given(st.lists(st.lists(st.integers(4, 9), max_size=6), max_size=5))
def test_padded_sentences_can_be_told_from_their_padding(sentences):
    numbers, lengths = pad_sequences(sentences)
    assert [row[:n].tolist() for row, n in zip(numbers, lengths, strict=True)] == sentences
    assert (numbers == PAD).sum() == numbers.numel() - sum(map(len, sentences))
    assert numbers.shape == (len(sentences), max(map(len, sentences), default=0))


@given(st.integers(0, 40), st.integers(1, 9))
def test_parts_of_a_batch_are_disjoint_complete_and_alike_in_size(size, world):
    rows = np.random.default_rng(0).permutation(size)
    parts = [shard(rows, rank, world).tolist() for rank in range(world)]
    assert sorted(row for part in parts for row in part) == list(range(size))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    assert shard(rows, 0, 1).tolist() == rows.tolist()


def test_parts_are_alike_in_length_too():
    rows = batch_by_length(CAPTIONS, 4096, 0, 0)[0]
    told = [CAPTIONS.lengths[1][shard(rows, rank, 3)].sum() for rank in range(3)]
    assert max(told) < 1.2 * min(told)
