"""Attention written out in the model: all common spellings of softmax(scores) @ values."""

import math

import pytest
import torch
from torch import nn
from torch.nn.functional import dropout, softmax

from regard import watch


class WrittenAttention(nn.Module):
    """Attention with projections, and the inner part written out as `compute`."""

    def __init__(self, compute):
        super().__init__()
        self.compute = compute
        self.q, self.k, self.v = (nn.Linear(12, 12) for _ in range(3))
        with torch.no_grad():
            for layer in (self.q, self.k):
                layer.weight.normal_(0, 0.5)

    def forward(self, rows, memory):
        parts = (self.q(rows), self.k(memory), self.v(memory))
        return self.compute(*(x.unflatten(-1, (3, 4)).transpose(1, 2) for x in parts))

    def weights(self, rows, memory):
        q, k = (x.unflatten(-1, (3, 4)).transpose(1, 2) for x in (self.q(rows), self.k(memory)))
        return (q @ k.mT / 2).softmax(-1)


def by_matmul(q, k, v):
    return torch.matmul(torch.softmax(q @ k.transpose(-2, -1) / 2, dim=-1), v)


def by_operator(q, k, v):
    return (q @ k.mT / 2).softmax(-1) @ v


def by_bmm(q, k, v):
    q, k, v = (x.flatten(0, 1) for x in (q, k, v))
    return torch.bmm(
        softmax(torch.bmm(q, k.transpose(1, 2)).unflatten(0, (2, 3)) / 2, -1).view(6, 5, -1), v
    )


def by_einsum(q, k, v):
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / 2
    return torch.einsum("bhqk,bhkd->bqhd", scores.softmax(-1), v)


def by_einsum_with_permuted_axes(q, k, v):
    scores = torch.einsum("bhqd,bhkd->qbhk", q, k) / 2
    return torch.einsum("bhkd,qbhk->qbhd", v, scores.softmax(-1))


def by_einsum_with_ellipsis(q, k, v):
    scores = torch.einsum("...qd,...kd->...qk", q, k) / 2
    return torch.einsum("...qk,...kd->...qd", scores.softmax(-1), v)


def by_implicit_einsum(q, k, v):
    return torch.einsum("...qk, ...kd", (q @ k.mT / 2).softmax(-1), v)


def by_view_after_permute(q, k, v):
    weights = (torch.einsum("bhqd,bhkd->bqhk", q, k) / 2).softmax(-1)
    weights = weights.permute(0, 2, 1, 3).contiguous().view(6, 5, -1)
    return torch.bmm(weights, v.flatten(0, 1))


def by_transposed_product(q, k, v):
    weights = (k @ q.mT / 2).softmax(dim=-2)
    return v.mT @ weights


def by_module_and_dropout(q, k, v):
    weights = nn.Softmax(dim=-1)(torch.matmul(q, k.mT) / math.sqrt(4))
    return nn.Dropout(0.5)(weights) @ v


def by_inplace_dropout(q, k, v):
    weights = (q @ k.mT / 2).softmax(-1)
    return dropout(weights, 0.5, training=True, inplace=True) @ v


def by_cast(q, k, v):
    return (q @ k.mT / 2).softmax(-1, dtype=torch.float64).to(q.dtype).contiguous() @ v


def by_product_and_sum(q, k, v):
    weights = (q @ k.mT / 2).softmax(-1)
    return (weights[..., None] * v[:, :, None]).sum(dim=3)


def by_keyword_arguments(q, k, v):
    scores = torch.matmul(input=q, other=k.mT) / 2
    weights = torch.special.softmax(scores, dim=-1)
    return torch.bmm(mat2=v.flatten(0, 1), input=weights.flatten(0, 1))


SPELLINGS = [
    by_keyword_arguments,
    by_matmul,
    by_operator,
    by_bmm,
    by_einsum,
    by_einsum_with_permuted_axes,
    by_einsum_with_ellipsis,
    by_implicit_einsum,
    by_view_after_permute,
    by_transposed_product,
    by_module_and_dropout,
    by_inplace_dropout,
    by_cast,
    by_product_and_sum,
]


@pytest.mark.parametrize("is_cross", [False, True])
@pytest.mark.parametrize("compute", SPELLINGS)
def test_every_spelling_is_captured(compute, is_cross):
    model, rows = WrittenAttention(compute), torch.randn(2, 5, 12)
    # of equal lengths, so that only lineage can tell the texts apart
    memory = torch.randn(2, 5, 12) if is_cross else rows
    torch.manual_seed(3)
    unwatched = model(rows, memory)
    torch.manual_seed(3)
    with watch(model) as capture:
        watched = model(rows, memory)
    assert torch.equal(unwatched, watched)
    assert [x.kind for x in capture] == ["cross" if is_cross else "self"]
    torch.testing.assert_close(capture[0].weights.float(), model.weights(rows, memory))


UNBATCHED_SPELLINGS = {
    "mm": lambda q, k, v: torch.mm((q @ k.T).softmax(-1), v),
    "matmul": lambda q, k, v: (q @ k.T).softmax(-1) @ v,
    "transposed matmul": lambda q, k, v: v.T @ (k @ q.T).softmax(0),
    "einsum": lambda q, k, v: torch.einsum("qk,kd", (q @ k.T).softmax(-1), v),
    "mv": lambda q, k, v: torch.mv((q @ k.T).softmax(-1), v[:, 0]),
    "scalar values": lambda q, k, v: v[:, 0] @ (k @ q.T).softmax(0),
    "one query": lambda q, k, v: (k @ q[0]).softmax(-1) @ v,
    "one query, transposed": lambda q, k, v: v.T @ (k @ q[0]).softmax(-1),
    "one query, mv": lambda q, k, v: torch.mv(v.T, torch.mv(k, q[0]).softmax(-1)),
    "one query, einsum": lambda q, k, v: torch.einsum("k,kd->d", (k @ q[0]).softmax(-1), v),
    "one query, scalar values": lambda q, k, v: (k @ q[0]).softmax(-1) @ v[:, 0],
}


@pytest.mark.parametrize("case", UNBATCHED_SPELLINGS)
def test_unbatched_attention_is_captured(case):
    class Unbatched(nn.Module):
        def forward(self, q, k, v):
            return UNBATCHED_SPELLINGS[case](q, k, v)

    model, (q, k, v) = Unbatched(), (torch.randn(n, 4) for n in (5, 7, 7))
    with watch(model) as capture:
        watched = model(q, k, v)
    assert torch.equal(watched, model(q, k, v))
    assert [x.kind for x in capture] == ["cross"], str(capture)
    expected = (q @ k.T).softmax(-1)
    torch.testing.assert_close(
        capture[0].weights[0, 0], expected[:1] if "one" in case else expected
    )


@pytest.mark.parametrize("equation", ["bqk,bkd->bqd", "...qk,...kd->...qd", "...qk,kd->...qd"])
def test_einsum_with_values_shared_by_the_batch_is_captured(equation):
    class Unbatched(nn.Module):
        def forward(self, rows, values):
            return torch.einsum(equation, (rows @ rows.mT).softmax(-1), values)

    model, rows = Unbatched(), torch.randn(2, 5, 4)
    values = torch.randn(5, 4) if ",kd" in equation else torch.randn(1, 5, 4).expand(2, -1, -1)
    with watch(model) as capture:
        model(rows, values)
    torch.testing.assert_close(capture[0].weights[:, 0], (rows @ rows.mT).softmax(-1))


def test_equal_numbers_of_queries_and_heads_are_not_confused():
    model, rows = WrittenAttention(by_einsum_with_permuted_axes), torch.randn(2, 3, 12)
    with watch(model) as capture:
        model(rows, rows)
    torch.testing.assert_close(capture[0].weights, model.weights(rows, rows))


def test_product_with_one_batch_item_is_captured():
    def single(q, k, v):
        return (q @ k.mT / 2).softmax(-1)[1] @ v[1]

    model, rows = WrittenAttention(single), torch.randn(2, 5, 12)
    with watch(model) as capture:
        model(rows, rows)
    torch.testing.assert_close(capture[0].weights, model.weights(rows, rows)[1:])


@pytest.mark.parametrize("batch", [2, 3])  # there are three heads
def test_product_with_one_head_is_captured(batch):
    def single(q, k, v):
        return (q @ k.mT / 2).softmax(-1)[:, 1] @ v[:, 1]

    model, rows = WrittenAttention(single), torch.randn(batch, 5, 12)
    with watch(model) as capture:
        model(rows, rows)
    torch.testing.assert_close(capture[0].weights, model.weights(rows, rows)[:, 1:2])


def test_value_norms_are_recorded():
    model, rows = WrittenAttention(by_matmul), torch.randn(2, 5, 12)
    with watch(model) as capture:
        model(rows, rows)
    values = model.v(rows).unflatten(-1, (3, 4)).transpose(1, 2)
    torch.testing.assert_close(capture[0].value_norms, values.norm(dim=-1))


def test_mask_after_softmax_is_applied():
    def masked(q, k, v):
        weights = (q @ k.mT / 2).softmax(-1)
        return weights.masked_fill(torch.ones(5, 5).triu(1).bool(), 0.0) @ v

    model, rows = WrittenAttention(masked), torch.randn(2, 5, 12)
    with watch(model) as capture:
        model(rows, rows)
    assert capture[0].kind == "causal"
    torch.testing.assert_close(capture[0].weights, model.weights(rows, rows).tril())


def test_sink_that_is_sliced_off_leaves_row_sums_below_one():
    def sink(q, k, v):
        scores = torch.cat([q @ k.mT / 2, torch.ones(2, 3, 5, 1)], dim=-1)
        return scores.softmax(-1)[..., :-1] @ v

    model, rows = WrittenAttention(sink), torch.randn(2, 5, 12)
    with watch(model) as capture:
        model(rows, rows)
    assert capture[0].weights.shape == (2, 3, 5, 5)
    assert capture[0].weights.sum(-1).mean() < 0.99


class BahdanauDecoder(nn.Module):
    """The decoder of many tutorials: one query per step."""

    def __init__(self, weighted_sum):
        super().__init__()
        self.weighted_sum = weighted_sum
        self.w, self.u, self.v = nn.Linear(6, 8), nn.Linear(12, 8), nn.Linear(8, 1)
        self.cell = nn.GRUCell(12, 6)

    def forward(self, memory, steps=4):
        state, collected = torch.zeros(2, 6), []
        for _ in range(steps):
            scores = self.v(torch.tanh(self.w(state)[:, None] + self.u(memory)))
            weights = scores.softmax(dim=1)
            collected.append(weights[..., 0].detach())
            state = self.cell(self.weighted_sum(weights, memory), state)
        return torch.stack(collected, dim=1)


@pytest.mark.parametrize("case", ["product and sum", "bmm", "transposed bmm"])
def test_stepwise_decoder_is_one_record(case):
    weighted_sums = {
        "product and sum": lambda w, m: (w * m).sum(1),
        "bmm": lambda w, m: torch.bmm(w.transpose(1, 2), m)[:, 0],
        "transposed bmm": lambda w, m: torch.bmm(m.transpose(1, 2), w)[..., 0],
    }
    model, memory = BahdanauDecoder(weighted_sums[case]), torch.randn(2, 7, 12)
    with watch(model) as capture:
        expected = model(memory)
    torch.testing.assert_close(capture[0].weights[:, 0], expected)
    assert capture[0].kind == "cross"
    assert [x.steps for x in capture] == [4]


def test_softmax_of_a_classifier_is_not_attention():
    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(9, 12)

        def forward(self, rows):
            probabilities = (rows @ self.embedding.weight.T).softmax(-1)
            mixed = probabilities @ self.embedding.weight
            pooled = torch.einsum(
                "bqk,bkd", probabilities[None], torch.randn(1, 9, 4)
            )  # over b, too
            return (
                mixed,
                probabilities.max(-1),
                probabilities.softmax(0) @ torch.randn(9, 4),
                pooled,
            )

    model = Classifier()
    with watch(model) as capture:
        model(torch.randn(20, 12))
    assert len(capture) == 0


@pytest.mark.parametrize("method", ["to", "type_as", "expand_as"])
def test_tensor_that_takes_dtype_or_shape_from_weights_is_not_tracked(method):
    def gated(q, k, v):
        weights = (q @ k.mT / 2).softmax(-1)
        gate = getattr(torch.ones(2, 3, 5, 5), method)(weights)
        return weights @ v, gate @ v

    model, rows = WrittenAttention(gated), torch.randn(2, 5, 12)
    with watch(model) as capture:
        model(rows, rows)
    assert len(capture) == 1
