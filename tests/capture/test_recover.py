import pytest
import torch
from torch.nn.functional import elu, scaled_dot_product_attention

from regard import RegardError, attend, recover_weights
from regard.attention import SCORE_NAMES, make_score


def random_vectors(keys=7):
    return torch.randn(2, 3, 5, 12), torch.randn(2, 3, keys, 12)


def test_fused_kernel_gives_the_weights_of_the_formula():
    queries, keys = random_vectors()
    weights = recover_weights(scaled_dot_product_attention, queries, keys)
    expected = (queries @ keys.mT / 12**0.5).softmax(-1)
    torch.testing.assert_close(weights, expected)


@pytest.mark.parametrize("width", [1, 3, 7, 12])
def test_any_value_width_gives_the_same_weights(width):
    queries, keys = random_vectors()
    weights = recover_weights(scaled_dot_product_attention, queries, keys, width)
    expected = recover_weights(scaled_dot_product_attention, queries, keys)
    torch.testing.assert_close(weights, expected)


@pytest.mark.parametrize("name", SCORE_NAMES)
def test_weights_times_values_is_the_context_for_every_score(name):
    score = make_score(name, (12, 12))
    queries, keys = (0.1 * rows for rows in random_vectors())  # near enough for bounded kernels
    values = torch.randn(2, 3, 7, 4)

    def mechanism(queries, keys, values):
        return attend(queries, keys, values, score=score)

    weights = recover_weights(mechanism, queries, keys)
    torch.testing.assert_close(weights @ values, mechanism(queries, keys, values))
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 5))


def test_causal_linear_attention_gives_causal_weights():
    def linear_attention(queries, keys, values):
        queries, keys = elu(queries) + 1, elu(keys) + 1
        state = torch.einsum("bhkd,bhkv->bhkdv", keys, values).cumsum(dim=2)
        scale = torch.einsum("bhqd,bhqd->bhq", queries, keys.cumsum(dim=2))
        return torch.einsum("bhqd,bhqdv->bhqv", queries, state) / scale[..., None]

    queries, keys = random_vectors(keys=5)
    weights = recover_weights(linear_attention, queries, keys)
    assert not weights.triu(1).any()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 5))


def test_wrong_widths_are_refused():
    with pytest.raises(RegardError, match="a context of width 7, .* \\(2, 3, 5, 12\\)"):
        recover_weights(lambda queries, keys, values: queries, *random_vectors())
    with pytest.raises(RegardError, match="width must be 1 or more, but it is 0"):
        recover_weights(scaled_dot_product_attention, *random_vectors(), width=0)
