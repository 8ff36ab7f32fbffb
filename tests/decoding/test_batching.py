import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from regard.decoding.batching import CELLS, STEP, groups_of, longest_text


@given(
    lengths=st.lists(st.integers(1, 90), min_size=1, max_size=400),
    beams=st.integers(1, 12),
    cores=st.integers(1, 5),
)
@example(lengths=[32] + [1] * 2000, beams=1, cores=1)
def test_groups_have_every_sentence_once_and_are_bounded_padding_included(lengths, beams, cores):
    groups = list(groups_of([[5] * length for length in lengths], beams, cores))
    assert sorted(row for rows in groups for row in rows) == list(range(len(lengths)))
    for rows in groups:
        longest = max(lengths[row] for row in rows)
        assert len(rows) == 1 or beams * longest * len(rows) <= CELLS


@pytest.mark.parametrize(
    ("sentences", "beams"), [(256, 1), (180, 1), (256, 5), (50, 5), (1000, 1), (700, 4)]
)
def test_cores_have_equal_shares_of_sentences_of_several_lengths(sentences, beams):
    lengths = [8 + row % 13 for row in range(sentences)]
    groups = list(groups_of([[5] * length for length in lengths], beams, cores=2))
    padded = [len(rows) * max(lengths[row] for row in rows) for rows in groups]
    assert len(groups) % 2 == 0 and max(padded) < 1.1 * min(padded)


@given(st.lists(st.integers(1, 90), min_size=1, max_size=60))
def test_those_who_go_together_may_say_equally_much_and_the_longest_come_first(lengths):
    groups = list(groups_of([[5] * length for length in lengths], beams=5, cores=2))
    for rows in groups:
        assert len({longest_text(lengths[row]) for row in rows}) == 1
    in_order = [lengths[row] for rows in groups for row in rows]
    assert in_order == sorted(lengths, reverse=True)


def test_a_text_may_be_twice_as_long_as_the_longest_of_like_length():
    assert longest_text(1) == longest_text(STEP) == 2 * STEP + 20
    assert longest_text(STEP + 1) == 4 * STEP + 20


def test_empty_sentences_are_in_no_group():
    assert list(groups_of([[], [5], []], beams=1, cores=2)) == [[1]]
    assert list(groups_of([[]], beams=1, cores=2)) == list(groups_of([], 1, 1)) == []
