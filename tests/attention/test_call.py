import pytest
import torch

from helpers import no_float64
from regard.attention import MultiHeadAttention, attend
from regard.attention.call import prepare_call, stack_groups, unstack_groups
from regard.errors import RegardError


def prepare(queries, keys, values=None, **changes):
    defaults = {"score": "dot", "mask": None, "bias": None, "offset": None}
    return prepare_call(queries, keys, values, **(defaults | changes))


def test_batch_axes_of_size_one_are_expanded():
    call = prepare(torch.randn(2, 1, 5, 12), torch.randn(1, 3, 7, 12), torch.randn(2, 3, 7, 4))
    assert call.queries.shape == (2, 3, 5, 12)
    assert call.keys.shape == (2, 3, 7, 12)
    assert call.shape.score_shape == (2, 3, 5, 7)


def test_expanding_does_not_copy():
    keys = torch.randn(1, 3, 7, 12)
    call = prepare(torch.randn(2, 3, 5, 12), keys)
    assert call.keys.data_ptr() == keys.data_ptr()


@pytest.mark.parametrize(("heads", "key_heads", "groups"), [(6, 2, 3), (6, 1, 6), (6, 6, 1)])
def test_groups_are_the_query_heads_per_key_head(heads, key_heads, groups):
    call = prepare(torch.randn(2, heads, 5, 12), torch.randn(2, key_heads, 7, 12))
    assert call.groups == groups
    assert call.shape.batch == (2, heads)
    assert call.keys.shape[1] == key_heads


def test_stack_groups_stacks_heads_of_one_key_head_and_unstack_undoes_it():
    rows = torch.randn(2, 6, 5, 12)
    stacked = stack_groups(rows, 3)
    assert stacked.shape == (2, 2, 15, 12)
    assert torch.equal(stacked[:, 1, 5:10], rows[:, 4])
    assert torch.equal(unstack_groups(stacked, 3), rows)


def test_heads_that_are_no_multiple_of_key_heads_are_refused():
    with pytest.raises(RegardError, match="a multiple of the keys' heads"):
        prepare(torch.randn(2, 5, 4, 12), torch.randn(2, 3, 7, 12))


def test_error_of_grouped_heads_shows_the_callers_shapes():
    with pytest.raises(RegardError, match=r"the shapes are \(3, 6, 4, 12\), \(2, 3, 7, 12\)"):
        prepare(torch.randn(3, 6, 4, 12), torch.randn(2, 3, 7, 12))


def test_batch_is_not_taken_for_grouped_heads():
    with pytest.raises(RegardError, match="batch axes"):
        prepare(torch.randn(6, 5, 12), torch.randn(2, 7, 12))


def test_needs_grad_follows_inputs_parameters_and_grad_mode():
    rows = torch.randn(2, 5, 12)
    assert not prepare(rows, rows).needs_grad()
    assert prepare(rows.clone().requires_grad_(), rows).needs_grad()
    assert prepare(rows, rows, bias=torch.zeros(5, 5, requires_grad=True)).needs_grad()
    score = MultiHeadAttention(12, 1, score="bilinear").score
    assert prepare(rows, rows, score=score).needs_grad()
    assert prepare(rows, rows, score=lambda q, k: q @ k.mT).needs_grad(), "it may hold parameters"
    with torch.no_grad():
        assert not prepare(rows, rows, score=score).needs_grad()


def test_single_query_is_removed_by_restore_shape():
    call = prepare(torch.randn(2, 12), torch.randn(2, 7, 12))
    assert call.single_query
    assert call.restore_shape(torch.zeros(2, 1, 12)).shape == (2, 12)
    assert attend(torch.randn(2, 12), torch.randn(2, 7, 12)).shape == (2, 12)


def test_random_numbers_of_an_accelerator_are_restored(monkeypatch):
    states = {no_float64.DEVICE: "before"}
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("mps"))
    monkeypatch.setattr(torch.mps, "get_rng_state", states.__getitem__)
    monkeypatch.setattr(
        torch.mps, "set_rng_state", lambda state, device: states.update({device: state})
    )
    with no_float64.SimulatedDevice():
        call = prepare(
            torch.randn(2, 5, 12).to(no_float64.DEVICE), None, score=lambda q, k: q @ k.mT
        )
    with call.preserve_rng():
        states[no_float64.DEVICE] = "after"
    assert states[no_float64.DEVICE] == "before"
