import pytest
import torch
from torch.nn.functional import elu, scaled_dot_product_attention

from regard import attend, recover_weights
from regard.attention import SCORE_NAMES, make_score


def vectors(keys=7):
    return torch.randn(2, 3, 5, 12), torch.randn(2, 3, keys, 12)


def test_the_weights_of_the_fused_kernel():
    queries, keys = vectors()
    weights = recover_weights(scaled_dot_product_attention, queries, keys)
    expected = (queries @ keys.mT / 12**0.5).softmax(-1)
    torch.testing.assert_close(weights, expected)


@pytest.mark.parametrize("width", [1, 3, 7, 12])
def test_values_may_be_fed_some_columns_at_a_time(width):
    queries, keys = vectors()
    weights = recover_weights(scaled_dot_product_attention, queries, keys, width)
    torch.testing.assert_close(
        weights, recover_weights(scaled_dot_product_attention, queries, keys)
    )


@pytest.mark.parametrize("name", SCORE_NAMES)
def test_weights_times_values_is_the_output_of_every_score(name):
    score = make_score(name, (12, 12))
    queries, keys = (0.1 * rows for rows in vectors())  # near enough for kernels that end
    values = torch.randn(2, 3, 7, 4)

    def mechanism(queries, keys, values):
        return attend(queries, keys, values, score=score)

    weights = recover_weights(mechanism, queries, keys)
    torch.testing.assert_close(weights @ values, mechanism(queries, keys, values))
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 5))


def test_causal_linear_attention_has_weights_too():
    def linear(queries, keys, values):
        queries, keys = elu(queries) + 1, elu(keys) + 1
        state = torch.einsum("bhkd,bhkv->bhkdv", keys, values).cumsum(dim=2)
        scale = torch.einsum("bhqd,bhqd->bhq", queries, keys.cumsum(dim=2))
        return torch.einsum("bhqd,bhqdv->bhqv", queries, state) / scale[..., None]

    queries, keys = vectors(keys=5)
    weights = recover_weights(linear, queries, keys)
    assert not weights.triu(1).any()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 5))


def test_what_gathers_another_width_is_refused():
    with pytest.raises(ValueError, match="must gather values of width 7, but .* \\(2, 3, 5, 12\\)"):
        recover_weights(lambda queries, keys, values: queries, *vectors())
    with pytest.raises(ValueError, match="width must be 1 or more"):
        recover_weights(scaled_dot_product_attention, *vectors(), width=0)
