import pytest
import torch

from regard.attention.call import prepare_call, stack_groups, unstack_groups


def lined_up(queries, keys, values=None, **changed):
    settings = {"score": "dot", "mask": None, "bias": None, "offset": None} | changed
    return prepare_call(queries, keys, values, **settings)


def test_batch_axes_of_size_one_are_stretched():
    job = lined_up(torch.randn(2, 1, 5, 12), torch.randn(1, 3, 7, 12), torch.randn(2, 3, 7, 4))
    assert job.queries.shape == (2, 3, 5, 12)
    assert job.keys.shape == (2, 3, 7, 12)
    assert job.shape.score_shape == (2, 3, 5, 7)


def test_stretching_copies_nothing():
    keys = torch.randn(1, 3, 7, 12)
    job = lined_up(torch.randn(2, 3, 5, 12), keys)
    assert job.keys.data_ptr() == keys.data_ptr()


@pytest.mark.parametrize(("heads", "key_heads", "groups"), [(6, 2, 3), (6, 1, 6), (6, 6, 1)])
def test_groups_count_the_query_heads_of_a_key_head(heads, key_heads, groups):
    job = lined_up(torch.randn(2, heads, 5, 12), torch.randn(2, key_heads, 7, 12))
    assert job.groups == groups
    assert job.shape.batch == (2, heads)
    assert job.keys.shape[1] == key_heads


def test_grouped_puts_heads_of_one_key_head_below_each_other_and_back():
    rows = torch.randn(2, 6, 5, 12)
    below = stack_groups(rows, 3)
    assert below.shape == (2, 2, 15, 12)
    assert torch.equal(below[:, 1, 5:10], rows[:, 4])
    assert torch.equal(unstack_groups(below, 3), rows)


def test_heads_that_are_no_multiple_are_refused():
    with pytest.raises(ValueError, match="a multiple of the keys' heads"):
        lined_up(torch.randn(2, 5, 4, 12), torch.randn(2, 3, 7, 12))


def test_heads_that_are_a_multiple_are_told_of_as_they_came():
    with pytest.raises(ValueError, match=r"the shapes are \(3, 6, 4, 12\), \(2, 3, 7, 12\)"):
        lined_up(torch.randn(3, 6, 4, 12), torch.randn(2, 3, 7, 12))


def test_a_batch_is_never_taken_for_grouped_heads():
    with pytest.raises(ValueError, match="batch axes"):
        lined_up(torch.randn(6, 5, 12), torch.randn(2, 7, 12))
