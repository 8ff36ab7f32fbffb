import pytest
import torch

from regard.attention import Cosine, Gaussian, attend
from regard.attention.backends import fused
from regard.masks import causal, lengths


@pytest.fixture
def kernel_calls(monkeypatch):
    """The arguments of every call of torch's kernel."""
    calls = []
    kernel = fused.scaled_dot_product_attention

    def spy(queries, keys, values, **arguments):
        shapes = {"queries": queries.shape, "keys": keys.shape, "values": values.shape}
        calls.append(shapes | arguments)
        return kernel(queries, keys, values, **arguments)

    monkeypatch.setattr(fused, "scaled_dot_product_attention", spy)
    return calls


def test_causal_mask_is_passed_as_a_flag(kernel_calls):
    attend(torch.randn(2, 3, 5, 12), mask=causal())
    assert kernel_calls[0]["is_causal"]
    assert kernel_calls[0]["attn_mask"] is None


def test_mask_that_is_all_true_is_left_out(kernel_calls):
    attend(torch.randn(2, 3, 1, 12), torch.randn(2, 3, 7, 12), mask=causal(), offset=6)
    assert not kernel_calls[0]["is_causal"]
    assert kernel_calls[0]["attn_mask"] is None


def test_lengths_mask_is_not_expanded_to_heads_and_queries(kernel_calls):
    attend(torch.randn(2, 3, 5, 12), torch.randn(2, 3, 7, 12), mask=lengths([4, 6]))
    assert kernel_calls[0]["attn_mask"].shape == (2, 1, 1, 7)


@pytest.mark.parametrize("batch", [(), (2,), (2, 3), (4, 2, 3)])
def test_kernel_gets_four_axes_for_any_batch(kernel_calls, batch):
    context = attend(torch.randn(*batch, 5, 12), torch.randn(*batch, 7, 12), mask=causal("first"))
    assert len(kernel_calls[0]["queries"]) == 4
    assert context.shape == (*batch, 5, 12)


@pytest.mark.parametrize("needs_grad", [True, False])
def test_padding_to_one_width_does_not_change_the_context(kernel_calls, needs_grad):
    queries, keys = torch.randn(2, 3, 5, 12, requires_grad=needs_grad), torch.randn(2, 3, 7, 12)
    for value_width in (6, 12, 20):
        values = torch.randn(2, 3, 7, value_width)
        context = attend(queries, keys, values, score=Gaussian(2.0))
        call = kernel_calls.pop()
        # the key bias is the kernel's mask without a gradient, and one more column with it
        width = max(13 if needs_grad else 12, value_width)
        assert call["queries"][-1] == call["keys"][-1] == call["values"][-1] == width
        assert (call["attn_mask"] is None) == needs_grad
        expected = attend(queries, keys, values, score=Gaussian(2.0), backend="dense")
        torch.testing.assert_close(context, expected)


def test_grouped_heads_without_mask_stack_queries_instead_of_repeating_keys(kernel_calls):
    attend(torch.randn(2, 6, 1, 12), torch.randn(2, 2, 7, 12))
    assert kernel_calls[0]["queries"] == (2, 2, 3, 12)
    assert kernel_calls[0]["keys"] == (2, 2, 7, 12)


def test_scale_is_passed_to_the_kernel(kernel_calls):
    tokens = torch.randn(2, 5, 16)
    attend(tokens)
    attend(tokens, score="dot")
    attend(tokens, score=Cosine(0.2))
    assert [call["scale"] for call in kernel_calls] == [0.25, 1.0, 5.0]
