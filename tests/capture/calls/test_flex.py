import pytest
import torch
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from regard import recover_weights, watch

pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")

SLOPES = torch.tensor([0.1, 0.5, 0.9, 2.0])


class FlexAttention(nn.Module):
    def __init__(self, **settings):
        super().__init__()
        self.settings = settings

    def forward(self, queries, keys, values):
        return flex_attention(queries, keys, values, **self.settings)


def distance_bias(score, batch, head, query, key):
    return score - 0.3 * (head + 1) * (query - key).abs()


def slope_per_head(score, batch, head, query, key):
    return score * SLOPES[head]


def causal_block_mask():
    return create_block_mask(lambda b, h, q, k: q >= k, None, None, 6, 6, device="cpu")


CASES = {  # the mask is made when it is needed: that imports torch's compiler
    "no mask": {},
    "scale": {"scale": 0.7},
    "score_mod": {"score_mod": distance_bias},
    "score_mod with a buffer": {"score_mod": slope_per_head},
    "block_mask": {"block_mask": causal_block_mask},
    "both": {"score_mod": distance_bias, "block_mask": causal_block_mask},
    "grouped": {"enable_gqa": True, "score_mod": slope_per_head},
}


@pytest.mark.parametrize("case", CASES)
def test_weights_agree_with_flex_attention(case):
    settings = dict(CASES[case])
    if "block_mask" in settings:
        settings["block_mask"] = settings["block_mask"]()
    model = FlexAttention(**settings)
    queries = torch.randn(2, 4, 6, 8)
    keys = torch.randn(2, 2 if case == "grouped" else 4, 6, 8)
    values = torch.randn_like(keys)
    unwatched = model(queries, keys, values)
    with watch(model) as capture:
        watched = model(queries, keys, values)
    assert torch.equal(unwatched, watched)
    torch.testing.assert_close(capture[0].weights, recover_weights(model, queries, keys))
    assert capture[0].kind == ("causal" if "block_mask" in CASES[case] else "self")
    assert capture[0].name == "FlexAttention"


def test_summary_is_computed_block_by_block():
    model = FlexAttention(score_mod=distance_bias)
    rows = torch.randn(1, 4, 6, 8)
    with watch(model, keep="summary") as capture:
        model(rows, rows, rows)
    weights = recover_weights(model, rows, rows)
    torch.testing.assert_close(capture[0].summary.received, weights.mean(-2))


def test_padding_mask_is_read_for_each_batch_item():
    lengths = torch.tensor([1, 5])
    mask = create_block_mask(lambda b, h, q, k: k < lengths[b], 2, None, 5, 5, device="cpu")
    model, rows = FlexAttention(block_mask=mask), torch.randn(2, 3, 5, 8)
    with watch(model) as capture:
        model(rows, rows, rows)
    assert capture[0].kind == "self"
    assert capture[0].fully_masked_keys.tolist() == [[False] + [True] * 4, [False] * 5]
