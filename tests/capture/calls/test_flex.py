import pytest
import torch
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from regard import recover_weights, watch

pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")


class Flexible(nn.Module):
    def __init__(self, **settings):
        super().__init__()
        self.settings = settings

    def forward(self, queries, keys, values):
        return flex_attention(queries, keys, values, **self.settings)


def nearer(score, batch, head, query, key):
    return score - 0.3 * (head + 1) * (query - key).abs()


def stairs(batch, head, query, key):
    return query >= key


SLOPES = torch.tensor([0.1, 0.5, 0.9, 2.0])


def learned(score, batch, head, query, key):
    return score * SLOPES[head]


CASES = {
    "plain": {},
    "scale": {"scale": 0.7},
    "score": {"score_mod": nearer},
    "table": {"score_mod": learned},
    "mask": {"block_mask": create_block_mask(stairs, None, None, 6, 6, device="cpu")},
    "both": {
        "score_mod": nearer,
        "block_mask": create_block_mask(stairs, None, None, 6, 6, device="cpu"),
    },
    "grouped": {"enable_gqa": True, "score_mod": learned},
}


@pytest.mark.parametrize("case", CASES)
def test_weights_are_those_of_the_function(case):
    model = Flexible(**CASES[case])
    queries = torch.randn(2, 4, 6, 8)
    keys = torch.randn(2, 2 if case == "grouped" else 4, 6, 8)
    values = torch.randn_like(keys)
    plain = model(queries, keys, values)
    with watch(model) as seen:
        watched = model(queries, keys, values)
    assert torch.equal(plain, watched)
    torch.testing.assert_close(seen[0].weights, recover_weights(model, queries, keys))
    assert seen[0].kind == ("causal" if "block_mask" in CASES[case] else "self")
    assert seen[0].name == "Flexible"


def test_reduced_weights_are_computed_block_by_block():
    model = Flexible(score_mod=nearer)
    rows = torch.randn(1, 4, 6, 8)
    with watch(model, keep="reduced") as seen:
        model(rows, rows, rows)
    whole = recover_weights(model, rows, rows)
    torch.testing.assert_close(seen[0].rows.received, whole.mean(-2))


def test_all_sentences_are_asked_and_what_they_hide_is_told():
    lengths = torch.tensor([1, 5])
    mask = create_block_mask(lambda b, h, q, k: k < lengths[b], 2, None, 5, 5, device="cpu")
    model, rows = Flexible(block_mask=mask), torch.randn(2, 3, 5, 8)
    with watch(model) as seen:
        model(rows, rows, rows)
    assert seen[0].kind == "self"
    assert seen[0].hidden.tolist() == [[False] + [True] * 4, [False] * 5]
