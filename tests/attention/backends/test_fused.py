import pytest
import torch

from regard.attention import Cosine, Gaussian, attend
from regard.attention.backends import fused
from regard.masks import causal, lengths


@pytest.fixture
def kernel_calls(monkeypatch):
    """Record what reaches torch's kernel."""
    calls = []
    kernel = fused.scaled_dot_product_attention

    def spy(queries, keys, values, **settings):
        calls.append(
            {"shape": queries.shape, "keys": keys.shape, "values": values.shape, **settings}
        )
        return kernel(queries, keys, values, **settings)

    monkeypatch.setattr(fused, "scaled_dot_product_attention", spy)
    return calls


def test_a_causal_mask_never_becomes_a_tensor(kernel_calls):
    attend(torch.randn(2, 3, 5, 12), mask=causal())
    assert kernel_calls[0]["is_causal"]
    assert kernel_calls[0]["attn_mask"] is None


def test_a_mask_that_hides_nothing_is_left_out(kernel_calls):
    attend(torch.randn(2, 3, 1, 12), torch.randn(2, 3, 7, 12), mask=causal(), offset=6)
    assert not kernel_calls[0]["is_causal"]
    assert kernel_calls[0]["attn_mask"] is None


def test_lengths_stay_as_small_as_they_are(kernel_calls):
    attend(torch.randn(2, 3, 5, 12), torch.randn(2, 3, 7, 12), mask=lengths([4, 6]))
    assert kernel_calls[0]["attn_mask"].shape == (2, 1, 1, 7)


@pytest.mark.parametrize("batch", [(), (2,), (2, 3), (4, 2, 3)])
def test_the_kernel_always_sees_four_axes(kernel_calls, batch):
    context = attend(torch.randn(*batch, 5, 12), torch.randn(*batch, 7, 12), mask=causal("first"))
    assert len(kernel_calls[0]["shape"]) == 4
    assert context.shape == (*batch, 5, 12)


@pytest.mark.parametrize("gradient", [True, False])
def test_one_width_is_made_of_two_without_changing_the_answer(kernel_calls, gradient):
    queries, keys = torch.randn(2, 3, 5, 12, requires_grad=gradient), torch.randn(2, 3, 7, 12)
    for value in (6, 12, 20):
        values = torch.randn(2, 3, 7, value)
        context = attend(queries, keys, values, score=Gaussian(2.0))
        sizes = kernel_calls.pop()
        # a lift that passes no gradients on is added; one that must becomes a column
        width = max(13 if gradient else 12, value)
        assert sizes["shape"][-1] == sizes["keys"][-1] == sizes["values"][-1] == width
        assert (sizes["attn_mask"] is None) == gradient
        dense = attend(queries, keys, values, score=Gaussian(2.0), backend="dense")
        torch.testing.assert_close(context, dense)


def test_grouped_keys_are_not_copied_when_nothing_is_hidden(kernel_calls):
    attend(torch.randn(2, 6, 1, 12), torch.randn(2, 2, 7, 12))
    assert kernel_calls[0]["shape"] == (2, 2, 3, 12)
    assert kernel_calls[0]["keys"] == (2, 2, 7, 12)


def test_scales_are_left_to_the_kernel(kernel_calls):
    tokens = torch.randn(2, 5, 16)
    attend(tokens)
    attend(tokens, score="dot")
    attend(tokens, score=Cosine(0.2))
    assert [call["scale"] for call in kernel_calls] == [0.25, 1.0, 5.0]
