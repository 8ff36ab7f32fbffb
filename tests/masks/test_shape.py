import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.masks.shape import AttentionShape, broadcasts

BATCH, HEADS, QUERIES, KEYS = 2, 3, 5, 7


def test_a_frame_has_the_shape_of_its_scores():
    assert AttentionShape(QUERIES, KEYS).score_shape == (5, 7)
    assert AttentionShape(QUERIES, KEYS, (BATCH, HEADS)).score_shape == (2, 3, 5, 7)


@pytest.mark.parametrize(
    ("batch", "sentences"),
    [((), ()), ((2,), (2,)), ((2, 3), (2,)), ((4, 2, 3), (4, 2))],
    ids=["none", "sentences", "heads", "two axes and heads"],
)
def test_from_two_axes_on_the_last_is_the_head(batch, sentences):
    assert AttentionShape(QUERIES, KEYS, batch).batch_without_head == sentences


def test_positions_number_queries_in_a_column_and_keys_in_a_row():
    frame = AttentionShape(QUERIES, KEYS)
    assert frame.query_positions().tolist() == [[0], [1], [2], [3], [4]]
    assert frame.key_positions().tolist() == [0, 1, 2, 3, 4, 5, 6]


def test_a_part_numbers_its_rows_as_the_whole_does():
    whole = AttentionShape(QUERIES, KEYS, (BATCH,), offset=4)
    part = whole.with_rows(2, 3)
    assert part.query_positions().tolist() == [[2], [3], [4]]
    assert part.key_positions().equal(whole.key_positions())
    assert (part.score_shape, part.offset) == (whole.score_shape, whole.offset)


def test_the_wanted_rows_are_cut_from_what_has_rows():
    numbers = torch.arange(BATCH * QUERIES * KEYS).reshape(BATCH, QUERIES, KEYS)
    part = AttentionShape(QUERIES, KEYS, (BATCH,)).with_rows(1, 2)
    assert part.slice_rows(numbers).equal(numbers[:, [1, 2]])
    assert part.slice_rows(numbers[:, :1]).equal(numbers[:, :1]), "one row holds for every query"
    assert AttentionShape(QUERIES, KEYS, (BATCH,)).slice_rows(numbers).equal(numbers)


@pytest.mark.parametrize(
    ("batch", "own_axes", "given", "placed"),
    [
        ((), 0, (), ()),
        ((), 1, (7,), (7,)),
        ((2,), 0, (2,), (2,)),
        ((2,), 1, (2, 7), (2, 7)),
        ((2, 3), 0, (2,), (2, 1)),
        ((2, 3), 1, (2, 7), (2, 1, 7)),
        ((2, 3), 1, (7,), (7,)),
        ((4, 2, 3), 0, (4, 2), (4, 2, 1)),
        ((4, 2, 3), 1, (4, 2, 7), (4, 2, 1, 7)),
    ],
)
def test_the_head_axis_goes_between_the_sentences_and_the_rest(batch, own_axes, given, placed):
    frame = AttentionShape(QUERIES, KEYS, batch)
    assert frame.insert_head_axis(torch.zeros(given), own_axes).shape == placed


@pytest.mark.parametrize("given", [(), (2,), (1,)])
def test_sizes_that_can_be_stretched_fit(given):
    frame = AttentionShape(QUERIES, KEYS, (BATCH, HEADS))
    assert frame.check_sizes("counts", torch.zeros(given)) is None


@pytest.mark.parametrize("given", [(3,), (2, 3), (0,)])
def test_sizes_that_cannot_be_stretched_are_refused(given):
    with pytest.raises(ValueError, match=r"counts must have the shape \(2,\), but its shape is"):
        AttentionShape(QUERIES, KEYS, (BATCH, HEADS)).check_sizes("counts", torch.zeros(given))


def test_own_axes_are_checked_too():
    frame = AttentionShape(QUERIES, KEYS, (BATCH, HEADS))
    frame.check_sizes("keep", torch.zeros(2, 7), (KEYS,))
    with pytest.raises(ValueError, match=r"keep must have the shape \(2, 7\).*\(2, 5\)"):
        frame.check_sizes("keep", torch.zeros(2, 5), (KEYS,))


shapes = st.lists(st.integers(0, 3), max_size=4).map(tuple)


@given(shapes, shapes)
def test_broadcasts_says_what_torch_does(given, wanted):
    try:
        stretched = torch.zeros(given).expand(wanted).shape == wanted
    except RuntimeError:
        stretched = False
    assert broadcasts(given, wanted) == stretched
