"""Batches of similar length for translation."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from regard.decoding.batching import LENGTH_STEP, MAX_TOKENS, length_batches, max_target_length


def batches_of(lengths, beam_size):
    return list(length_batches([[5] * length for length in lengths], beam_size))


@given(
    lengths=st.lists(st.integers(1, 90), min_size=1, max_size=400),
    beam_size=st.integers(1, 12),
)
@example(lengths=[32] + [1] * 2000, beam_size=1)
def test_every_sentence_is_in_one_batch_of_bounded_size(lengths, beam_size):
    batches = batches_of(lengths, beam_size)
    assert sorted(row for rows in batches for row in rows) == list(range(len(lengths)))
    for rows in batches:
        longest = max(lengths[row] for row in rows)
        assert len(rows) == 1 or beam_size * longest * len(rows) <= MAX_TOKENS


@pytest.mark.parametrize(
    ("sentences", "beam_size"), [(256, 1), (180, 1), (256, 5), (50, 5), (1000, 1), (700, 4)]
)
def test_two_threads_get_equal_shares_of_mixed_lengths(sentences, beam_size):
    lengths = [8 + row % 13 for row in range(sentences)]
    batches = batches_of(lengths, beam_size)
    padded = [len(rows) * max(lengths[row] for row in rows) for rows in batches]
    assert len(batches) % 2 == 0 and max(padded) < 1.1 * min(padded)


@given(st.lists(st.integers(1, 90), min_size=1, max_size=60))
def test_batches_have_one_max_target_length_and_descend_in_length(lengths):
    batches = batches_of(lengths, beam_size=5)
    for rows in batches:
        assert len({max_target_length(lengths[row]) for row in rows}) == 1
    in_order = [lengths[row] for rows in batches for row in rows]
    assert in_order == sorted(lengths, reverse=True)


def test_max_target_length_is_twice_the_longest_source_of_the_interval_plus_20():
    assert max_target_length(1) == max_target_length(LENGTH_STEP) == 2 * LENGTH_STEP + 20
    assert max_target_length(LENGTH_STEP + 1) == 4 * LENGTH_STEP + 20


def test_empty_sentences_are_in_no_batch():
    assert list(length_batches([[], [5], []], beam_size=1)) == [[1]]
    assert list(length_batches([[]], 1)) == list(length_batches([], 1)) == []
