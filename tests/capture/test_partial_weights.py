"""Records with some of the keys of a softmax: their rows sum to less than 1, and they say so."""

import pytest
import torch
from torch import nn

from regard import watch


class Memory(nn.Module):
    """Attention to a text and to other keys, whose values are given by a function."""

    def __init__(self, values_of_others):
        super().__init__()
        self.to_q, self.to_k, self.to_v = (nn.Linear(8, 8) for _ in range(3))
        self.values_of_others = values_of_others
        self.others = nn.Parameter(torch.randn(3, 8))

    def forward(self, x, mask=None):
        q, k, v = self.to_q(x), self.to_k(x), self.to_v(x)
        scores = torch.cat([q @ k.mT, q @ self.others.T], dim=-1)
        if mask is not None:
            scores = scores.masked_fill(mask, -torch.inf)
        weights = scores.softmax(dim=-1)
        own, others = weights[..., : x.shape[1]], weights[..., x.shape[1] :]
        return own @ v + self.values_of_others(others)


def lost(weights):
    """Sum over keys in a way that no torch function shows."""
    return torch.from_numpy(weights.detach().numpy().sum(-1, keepdims=True))


@pytest.mark.parametrize("keep", ["all", "summary"])
def test_record_without_some_keys_says_so(keep):
    torch.manual_seed(0)
    model, x = Memory(lost), torch.randn(2, 5, 8)
    with watch(model, keep=keep) as capture:
        model(x)
    (record,) = capture
    assert record.is_summarized == (keep == "summary")
    assert record.is_partial
    assert "some keys of the softmax missing: rows sum to 0." in str(capture)


def test_sums_of_rows_are_those_of_the_weights_or_their_summary():
    torch.manual_seed(0)
    model, x = Memory(lost), torch.randn(2, 50, 8)
    sums = []
    for keep in ("all", "summary"):
        with watch(model, keep=keep) as capture:
            model(x)
        sums.append(capture[0].row_sums)
    torch.testing.assert_close(*sums)


def test_other_keys_that_are_masked_are_not_missing():
    torch.manual_seed(0)
    model, x = Memory(lost), torch.randn(2, 5, 8)
    with watch(model) as capture:
        model(x, mask=torch.arange(8) >= 5)
    assert not capture[0].is_partial


def test_queries_that_are_masked_do_not_make_a_record_partial():
    torch.manual_seed(0)
    q = torch.randn(2, 3, 5, 4)
    mask = torch.ones(5, 5, dtype=torch.bool).tril(-1)  # the first query has no keys

    class Fused(nn.Module):
        def forward(self, q):
            return nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=mask)

    model = Fused()
    with watch(model) as capture:
        model(q)
    assert not capture[0].is_partial


def test_rows_that_sum_to_one_are_not_partial():
    torch.manual_seed(0)
    model = nn.MultiheadAttention(8, 2, batch_first=True)
    mask = torch.eye(5, dtype=torch.bool)
    x = torch.randn(2, 5, 8)
    with watch(model) as capture:
        model(x, x, x, attn_mask=mask)
    assert not capture[0].is_partial
    assert "missing" not in str(capture)


class LearnedTokens(nn.Module):
    """Blocks of a text that also attend to learned tokens, whose values are multiplied apart."""

    def __init__(self):
        super().__init__()
        self.to_q, self.to_k, self.to_v = (nn.Linear(8, 8) for _ in range(3))
        self.tokens = nn.Parameter(torch.randn(3, 8))

    def forward(self, x):
        tokens = self.tokens.expand(len(x), -1, -1)
        q, k, v, token_k, token_v = (
            layer(rows).unflatten(-1, (2, 4)).transpose(1, 2)
            for layer, rows in (
                *((layer, x) for layer in (self.to_q, self.to_k, self.to_v)),
                *((layer, tokens) for layer in (self.to_k, self.to_v)),
            )
        )
        q, k, v = (t.unflatten(2, (-1, 5)) for t in (q, k, v))
        with_tokens = torch.einsum("bhwqd,bhkd->bhwqk", q, token_k)
        self.weights = torch.cat([with_tokens, q @ k.mT], dim=-1).softmax(dim=-1)
        out = torch.einsum("bhwqk,bhkd->bhwqd", self.weights[..., :3], token_v)
        return out + self.weights[..., 3:] @ v


def test_weights_of_learned_tokens_are_recorded():
    torch.manual_seed(0)
    model = LearnedTokens()
    with watch(model) as capture:
        model(torch.randn(2, 20, 8))
    weights = model.weights.transpose(1, 2)
    assert [record.kind for record in capture] == ["cross", "self"]
    torch.testing.assert_close(capture[0].weights, weights[..., :3])
    torch.testing.assert_close(capture[1].weights, weights[..., 3:])
    assert all(record.is_partial for record in capture)
