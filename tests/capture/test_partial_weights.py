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


@torch.no_grad()
def test_learned_tokens_are_keys_after_those_of_the_blocks():
    torch.manual_seed(0)
    model = LearnedTokens()
    with watch(model) as capture:
        model(torch.randn(2, 20, 8))
    (record,) = capture
    assert record.kind == "self"
    assert not record.is_partial
    learned, own = model.weights.transpose(1, 2).split([3, 5], dim=-1)
    torch.testing.assert_close(record.weights, torch.cat([own, learned], dim=-1))
    whole = torch.zeros(2, 20, 23)
    for window, (blocks, tokens) in enumerate(zip(own[1], learned[1], strict=True)):
        rows = slice(5 * window, 5 * window + 5)
        whole[:, rows, rows], whole[:, rows, 20:] = blocks, tokens
    shown = capture.trace(batch_index=1).maps[0].weights
    torch.testing.assert_close(torch.from_numpy(shown).float(), whole)


class Gated(Memory):
    """The same weights, of which a gate is applied to those that meet values."""

    def forward(self, x):
        scores = torch.cat([self.to_q(x) @ self.to_k(x).mT, self.to_q(x) @ self.others.T], dim=-1)
        weights = scores.softmax(dim=-1) * scores.sigmoid()
        own, others = weights[..., : x.shape[1]], weights[..., x.shape[1] :]
        return own @ self.to_v(x) + self.values_of_others(others)


def test_record_without_some_keys_says_so_after_a_gate():
    torch.manual_seed(0)
    model = Gated(lost)
    with watch(model) as capture:
        model(torch.randn(2, 5, 8))
    assert capture[0].applied
    assert capture[0].is_partial
    assert "some keys of the softmax missing" in str(capture)


class TransientGlobal(nn.Module):
    """LongT5's encoder: blocks, and the sums of other blocks as further keys."""

    def __init__(self):
        super().__init__()
        self.to_q, self.to_k, self.to_v = (nn.Linear(8, 8) for _ in range(3))

    def forward(self, x):
        blocks = nn.functional.one_hot(torch.arange(20) // 4, 5).to(x)
        sums = torch.einsum("bnd,ng->bgd", x, blocks)
        q, k, v, sums_k, sums_v = (
            layer(rows).unflatten(-1, (2, 4))
            for layer, rows in (
                *((layer, x) for layer in (self.to_q, self.to_k, self.to_v)),
                *((layer, sums) for layer in (self.to_k, self.to_v)),
            )
        )
        q, k, v = (t.unflatten(1, (-1, 5)) for t in (q, k, v))
        sums_k, sums_v = (t[:, None].repeat(1, 4, 1, 1, 1) for t in (sums_k, sums_v))
        k, v = torch.cat([k, sums_k], dim=2), torch.cat([v, sums_v], dim=2)
        self.weights = torch.einsum("...qhd,...khd->...hqk", q, k).softmax(dim=-1)
        return torch.einsum("...hqk,...khd->...qhd", self.weights, v).flatten(1, 2).flatten(2)


@torch.no_grad()
def test_sums_of_blocks_are_keys_after_the_text_in_a_trace():
    torch.manual_seed(0)
    model = TransientGlobal()
    with watch(model) as capture:
        model(torch.randn(2, 20, 8))
    torch.testing.assert_close(capture[0].weights, model.weights)
    whole = torch.zeros(2, 20, 25)
    for window, weights in enumerate(model.weights[1]):
        rows = slice(5 * window, 5 * window + 5)
        whole[:, rows, rows], whole[:, rows, 20:] = weights.split([5, 5], dim=-1)
    shown = capture.trace(batch_index=1).maps[0]
    assert shown.kind == "self"
    torch.testing.assert_close(torch.from_numpy(shown.weights).float(), whole)
