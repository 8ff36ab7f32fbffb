import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.data import (
    BOS,
    EOS,
    PAD,
    UNK,
    Batch,
    EncodedPairs,
    batch_by_length,
    check_token_ids,
    collate,
    pad_sequences,
    shard,
)
from regard.errors import RegardError


def encode(pairs, links=()):
    """Return pairs of token lists as EncodedPairs."""
    columns = []
    for side in ([pair[0] for pair in pairs], [pair[1] for pair in pairs], list(links)):
        side = side or [[]] * len(pairs)
        flat = np.array([token for tokens in side for token in tokens], dtype=np.uint16)
        starts = np.cumsum([0, *(len(tokens) for tokens in side)])
        columns += [flat, starts]
    return EncodedPairs(*columns, dropped={})


def of_lengths(lengths):
    return encode([([5] * source, [7] * target) for source, target in lengths])


def realistic(pairs=29_000):
    """Lengths distributed as in Multi30k English-German with a vocabulary of 8,000."""
    rng = np.random.default_rng(3)
    source = np.clip(rng.lognormal(2.61, 0.32, pairs), 1, 128).astype(int)
    target = np.clip(source * rng.normal(1.04, 0.19, pairs), 1, 128)
    starts = [np.concatenate([[0], np.cumsum(lengths)]) for lengths in (source, target.astype(int))]
    tokens = [np.full(ends[-1], 9, dtype=np.uint16) for ends in starts]
    none = np.zeros(0, dtype=np.uint16), np.zeros(pairs + 1, dtype=np.int64)
    return EncodedPairs(tokens[0], starts[0], tokens[1], starts[1], *none, dropped={})


CAPTIONS = realistic()
some_lengths = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), max_size=40)


@given(some_lengths, st.integers(1, 200), st.integers(0, 5), st.integers(0, 5))
def test_every_pair_is_in_exactly_one_batch(lengths, batch_tokens, seed, epoch):
    batches = batch_by_length(of_lengths(lengths), batch_tokens, seed, epoch)
    assert sorted(row for rows in batches for row in rows) == list(range(len(lengths)))
    assert all(len(rows) for rows in batches)


@given(some_lengths, st.integers(1, 200), st.integers(0, 5))
def test_batches_are_within_the_token_budget_unless_one_pair_exceeds_it(
    lengths, batch_tokens, epoch
):
    pairs = of_lengths(lengths)
    for rows in batch_by_length(pairs, batch_tokens, 0, epoch):
        batch = collate(pairs, rows)
        assert max(batch.source.numel(), batch.targets.numel()) <= batch_tokens or len(rows) == 1


@given(some_lengths, st.integers(1, 200), st.integers(0, 5), st.integers(0, 5))
def test_equal_seed_and_epoch_give_equal_batches(lengths, batch_tokens, seed, epoch):
    one, other = (batch_by_length(of_lengths(lengths), batch_tokens, seed, epoch) for _ in range(2))
    assert [rows.tolist() for rows in one] == [rows.tolist() for rows in other]


def contents(batches):
    return {tuple(sorted(rows.tolist())) for rows in batches}


def test_other_epoch_or_seed_gives_other_batches():
    one = batch_by_length(CAPTIONS, 4096, seed=1, epoch=0)
    for other in (
        batch_by_length(CAPTIONS, 4096, seed=1, epoch=1),
        batch_by_length(CAPTIONS, 4096, seed=2, epoch=0),
    ):
        assert [rows.tolist() for rows in one] != [rows.tolist() for rows in other]
        assert len(contents(one) & contents(other)) < len(one) / 4


def test_other_epoch_cuts_at_other_lengths():
    sizes = [
        sorted(map(len, batch_by_length(CAPTIONS, 4096, seed=1, epoch=epoch))) for epoch in range(2)
    ]
    assert sizes[0] != sizes[1]


def test_order_of_batches_is_independent_of_length():
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


def test_collated_batch_worked_by_hand():
    pairs = encode([([5, 6, 7], [8]), ([9], [4, 5, 6, 7])])
    batch = collate(pairs, np.array([1, 0]))
    assert batch.source.tolist() == [[9, PAD, PAD], [5, 6, 7]]
    assert batch.lengths.tolist() == [1, 3]
    assert batch.inputs.tolist() == [[BOS, 4, 5, 6, 7], [BOS, 8, *[PAD] * 3]]
    assert batch.targets.tolist() == [[4, 5, 6, 7, EOS], [8, EOS, *[PAD] * 3]]
    assert batch.links is None
    assert batch.target_tokens == 7
    assert {part.dtype for part in batch[:4]} == {torch.int64}


@given(some_lengths.filter(bool))
def test_targets_are_the_inputs_shifted_by_one(lengths):
    pairs = of_lengths(lengths)
    batch = collate(pairs, np.arange(len(pairs)))
    assert (batch.inputs[:, 0] == BOS).all()
    later, earlier = batch.inputs[:, 1:], batch.targets[:, :-1]
    assert later[later != PAD].equal(earlier[later != PAD])
    assert (batch.targets == EOS).sum(dim=1).tolist() == [1] * len(pairs)
    assert batch.target_tokens == sum(target + 1 for _, target in lengths)


def test_links_are_at_the_position_that_writes_the_target_piece():
    pairs = encode([([5, 6, 7], [8, 9]), ([5], [6])], links=[[0, 1, 2, 0], []])
    links = collate(pairs, np.array([0, 1]), with_links=True).links
    assert links.shape == (2, 3, 3)
    assert links.nonzero().tolist() == [[0, 0, 2], [0, 1, 0]]
    assert links.sum() == 2


def test_batch_moves_to_a_device_with_all_its_tensors():
    pairs = encode([([5], [6, 7])], links=[[0, 1]])
    for with_links in (False, True):
        moved = collate(pairs, np.array([0]), with_links).to(torch.device("meta"))
        assert isinstance(moved, Batch)
        assert {part.device.type for part in moved if part is not None} == {"meta"}
        assert (moved.links is None) != with_links


@given(st.lists(st.lists(st.integers(4, 9), max_size=6), max_size=5))
def test_padded_sequences_are_recovered_by_their_lengths(sequences):
    ids, lengths = pad_sequences(sequences)
    assert [row[:n].tolist() for row, n in zip(ids, lengths, strict=True)] == sequences
    assert (ids == PAD).sum() == ids.numel() - sum(map(len, sequences))
    assert ids.shape == (len(sequences), max(map(len, sequences), default=0))


@given(st.integers(0, 40), st.integers(1, 9))
def test_shards_are_disjoint_complete_and_of_similar_size(size, world_size):
    rows = np.random.default_rng(0).permutation(size)
    parts = [shard(rows, rank, world_size).tolist() for rank in range(world_size)]
    assert sorted(row for part in parts for row in part) == list(range(size))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    assert shard(rows, 0, 1).tolist() == rows.tolist()


def test_shards_have_similar_numbers_of_tokens():
    rows = batch_by_length(CAPTIONS, 4096, 0, 0)[0]
    tokens = [CAPTIONS.lengths[1][shard(rows, rank, 3)].sum() for rank in range(3)]
    assert max(tokens) < 1.2 * min(tokens)


def test_special_tokens_are_the_first_four_ids():
    assert sorted([PAD, BOS, EOS, UNK]) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("tokens", "lengths", "message"),
    [
        (torch.ones(2, 3), None, r"text must be integers .*\(batch, position\), .* torch.float32"),
        (torch.ones(3).long(), None, r"text must be integers .* and its shape \(3,\)"),
        (torch.tensor([[1, 9]]), None, "text must be token ids from 0 to 8, .* but one is 9"),
        (torch.tensor([[-1, 2]]), None, "text must be token ids .* but one is -1"),
        (torch.ones(2, 3).long(), torch.tensor([3]), r"lengths must have shape \(2,\), .* \(1,\)"),
        (torch.ones(2, 3).long(), torch.tensor([3, 0]), "from 1 to 3, .* item 1 has length 0"),
        (torch.ones(2, 3).long(), torch.tensor([4, 1]), "width of text, .* item 0 has length 4"),
    ],
)
def test_invalid_token_ids_are_refused(tokens, lengths, message):
    with pytest.raises(RegardError, match=message):
        check_token_ids("text", tokens, 9, lengths)


def test_valid_token_ids_are_accepted():
    assert check_token_ids("text", torch.tensor([[8, 0]]), 9, torch.tensor([2])) is None
