import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import RegardError
from regard.masks import AttentionShape, is_broadcastable

BATCH, HEADS, QUERIES, KEYS = 2, 3, 5, 7


def test_score_shape_is_batch_query_key():
    assert AttentionShape(QUERIES, KEYS).score_shape == (5, 7)
    assert AttentionShape(QUERIES, KEYS, (BATCH, HEADS)).score_shape == (2, 3, 5, 7)


@pytest.mark.parametrize(
    ("batch", "without_head"),
    [((), ()), ((2,), (2,)), ((2, 3), (2,)), ((4, 2, 3), (4, 2))],
    ids=["none", "batch", "batch and heads", "two axes and heads"],
)
def test_last_of_two_or_more_batch_axes_is_the_head(batch, without_head):
    assert AttentionShape(QUERIES, KEYS, batch).batch_without_head == without_head


def test_positions_are_a_column_of_queries_and_a_row_of_keys():
    shape = AttentionShape(QUERIES, KEYS)
    assert shape.query_positions().tolist() == [[0], [1], [2], [3], [4]]
    assert shape.key_positions().tolist() == [0, 1, 2, 3, 4, 5, 6]


def test_selected_rows_keep_their_positions_and_the_shape():
    whole = AttentionShape(QUERIES, KEYS, (BATCH,), offset=4)
    part = whole.with_rows(2, 3)
    assert part.query_positions().tolist() == [[2], [3], [4]]
    assert part.key_positions().equal(whole.key_positions())
    assert (part.score_shape, part.offset) == (whole.score_shape, whole.offset)


def test_slice_rows_returns_the_selected_rows():
    tensor = torch.arange(BATCH * QUERIES * KEYS).reshape(BATCH, QUERIES, KEYS)
    part = AttentionShape(QUERIES, KEYS, (BATCH,)).with_rows(1, 2)
    assert part.slice_rows(tensor).equal(tensor[:, [1, 2]])
    assert part.slice_rows(tensor[:, :1]).equal(tensor[:, :1]), "one row holds for every query"
    assert AttentionShape(QUERIES, KEYS, (BATCH,)).slice_rows(tensor).equal(tensor)


@pytest.mark.parametrize(
    ("batch", "own_axes", "before", "after"),
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
def test_head_axis_is_inserted_between_batch_and_own_axes(batch, own_axes, before, after):
    shape = AttentionShape(QUERIES, KEYS, batch)
    assert shape.insert_head_axis(torch.zeros(before), own_axes).shape == after


@pytest.mark.parametrize("size", [(), (2,), (1,)])
def test_sizes_that_broadcast_are_accepted(size):
    shape = AttentionShape(QUERIES, KEYS, (BATCH, HEADS))
    assert shape.check_sizes("counts", torch.zeros(size)) is None


@pytest.mark.parametrize("size", [(3,), (2, 3), (0,)])
def test_sizes_that_do_not_broadcast_are_refused(size):
    with pytest.raises(RegardError, match=r"counts must have the shape \(2,\), but its shape is"):
        AttentionShape(QUERIES, KEYS, (BATCH, HEADS)).check_sizes("counts", torch.zeros(size))


def test_sizes_of_own_axes_are_checked():
    shape = AttentionShape(QUERIES, KEYS, (BATCH, HEADS))
    shape.check_sizes("keep", torch.zeros(2, 7), (KEYS,))
    with pytest.raises(RegardError, match=r"keep must have the shape \(2, 7\).*\(2, 5\)"):
        shape.check_sizes("keep", torch.zeros(2, 5), (KEYS,))


shapes = st.lists(st.integers(0, 3), max_size=4).map(tuple)


@given(shapes, shapes)
def test_is_broadcastable_agrees_with_expand(shape, target):
    try:
        expands = torch.zeros(shape).expand(target).shape == target
    except RuntimeError:
        expands = False
    assert is_broadcastable(shape, target) == expands
