import math

import pytest
import torch
from torch import nn
from torch.nn.functional import dropout, softmax

from regard import watch


class Written(nn.Module):
    """Attention as people write it; `how` is the part that differs."""

    def __init__(self, how):
        super().__init__()
        self.how = how
        self.q, self.k, self.v = (nn.Linear(12, 12) for _ in range(3))
        with torch.no_grad():
            for layer in (self.q, self.k):
                layer.weight.normal_(0, 0.5)

    def forward(self, rows, memory):
        parts = (self.q(rows), self.k(memory), self.v(memory))
        return self.how(*(x.unflatten(-1, (3, 4)).transpose(1, 2) for x in parts))

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


def by_einsum_turned_around(q, k, v):
    scores = torch.einsum("bhqd,bhkd->qbhk", q, k) / 2
    return torch.einsum("bhkd,qbhk->qbhd", v, scores.softmax(-1))


def by_einsum_with_dots(q, k, v):
    scores = torch.einsum("...qd,...kd->...qk", q, k) / 2
    return torch.einsum("...qk,...kd->...qd", scores.softmax(-1), v)


def by_einsum_without_a_result(q, k, v):
    return torch.einsum("...qk, ...kd", (q @ k.mT / 2).softmax(-1), v)


def by_a_view_of_what_was_turned(q, k, v):
    weights = (torch.einsum("bhqd,bhkd->bqhk", q, k) / 2).softmax(-1)
    weights = weights.permute(0, 2, 1, 3).contiguous().view(6, 5, -1)
    return torch.bmm(weights, v.flatten(0, 1))


def by_the_other_side(q, k, v):
    weights = (k @ q.mT / 2).softmax(dim=-2)
    return v.mT @ weights


def by_module_and_dropout(q, k, v):
    weights = nn.Softmax(dim=-1)(torch.matmul(q, k.mT) / math.sqrt(4))
    return nn.Dropout(0.5)(weights) @ v


def by_dropout_in_place(q, k, v):
    weights = (q @ k.mT / 2).softmax(-1)
    return dropout(weights, 0.5, training=True, inplace=True) @ v


def by_cast(q, k, v):
    return (q @ k.mT / 2).softmax(-1, dtype=torch.float64).to(q.dtype).contiguous() @ v


def by_product_and_sum(q, k, v):
    weights = (q @ k.mT / 2).softmax(-1)
    return (weights[..., None] * v[:, :, None]).sum(dim=3)


def by_names(q, k, v):
    scores = torch.matmul(input=q, other=k.mT) / 2
    weights = torch.special.softmax(scores, dim=-1)
    return torch.bmm(mat2=v.flatten(0, 1), input=weights.flatten(0, 1))


WAYS = [
    by_names,
    by_matmul,
    by_operator,
    by_bmm,
    by_einsum,
    by_einsum_turned_around,
    by_einsum_with_dots,
    by_einsum_without_a_result,
    by_a_view_of_what_was_turned,
    by_the_other_side,
    by_module_and_dropout,
    by_dropout_in_place,
    by_cast,
    by_product_and_sum,
]


@pytest.mark.parametrize("way", range(len(WAYS)), ids=[way.__name__ for way in WAYS])
@pytest.mark.parametrize("crossed", [False, True])
def test_all_ways_of_writing_are_seen(way, crossed):
    model, rows = Written(WAYS[way]), torch.randn(2, 5, 12)
    memory = torch.randn(2, 5, 12) if crossed else rows  # only origins tell them apart
    torch.manual_seed(3)
    plain = model(rows, memory)
    torch.manual_seed(3)
    with watch(model) as seen:
        watched = model(rows, memory)
    assert torch.equal(plain, watched)
    assert [look.kind for look in seen] == ["cross" if crossed else "self"]
    torch.testing.assert_close(seen[0].weights.float(), model.weights(rows, memory))


WITHOUT_BATCH = {
    "mm": lambda q, k, v: torch.mm((q @ k.T).softmax(-1), v),
    "matmul": lambda q, k, v: (q @ k.T).softmax(-1) @ v,
    "matmul from the other side": lambda q, k, v: v.T @ (k @ q.T).softmax(0),
    "einsum": lambda q, k, v: torch.einsum("qk,kd", (q @ k.T).softmax(-1), v),
    "mv": lambda q, k, v: torch.mv((q @ k.T).softmax(-1), v[:, 0]),
    "numbers as values": lambda q, k, v: v[:, 0] @ (k @ q.T).softmax(0),
    "one query": lambda q, k, v: (k @ q[0]).softmax(-1) @ v,
    "one query from the other side": lambda q, k, v: v.T @ (k @ q[0]).softmax(-1),
    "one query and mv": lambda q, k, v: torch.mv(v.T, torch.mv(k, q[0]).softmax(-1)),
    "one query and einsum": lambda q, k, v: torch.einsum("k,kd->d", (k @ q[0]).softmax(-1), v),
    "one query and numbers": lambda q, k, v: (k @ q[0]).softmax(-1) @ v[:, 0],
}


@pytest.mark.parametrize("way", WITHOUT_BATCH)
def test_what_has_no_batch_is_seen(way):
    class Bare(nn.Module):
        def forward(self, q, k, v):
            return WITHOUT_BATCH[way](q, k, v)

    model, (q, k, v) = Bare(), (torch.randn(n, 4) for n in (5, 7, 7))
    with watch(model) as seen:
        watched = model(q, k, v)
    assert torch.equal(watched, model(q, k, v))
    assert [look.kind for look in seen] == ["cross"], str(seen)
    expected = (q @ k.T).softmax(-1)
    torch.testing.assert_close(seen[0].weights[0, 0], expected[:1] if "one" in way else expected)


@pytest.mark.parametrize("equation", ["bqk,bkd->bqd", "...qk,...kd->...qd", "...qk,kd->...qd"])
def test_values_may_be_the_same_for_all_sentences_of_an_einsum(equation):
    class Bare(nn.Module):
        def forward(self, rows, values):
            return torch.einsum(equation, (rows @ rows.mT).softmax(-1), values)

    model, rows = Bare(), torch.randn(2, 5, 4)
    values = torch.randn(5, 4) if ",kd" in equation else torch.randn(1, 5, 4).expand(2, -1, -1)
    with watch(model) as seen:
        model(rows, values)
    torch.testing.assert_close(seen[0].weights[:, 0], (rows @ rows.mT).softmax(-1))


def test_as_many_queries_as_heads_are_not_taken_for_each_other():
    model, rows = Written(by_einsum_turned_around), torch.randn(2, 3, 12)
    with watch(model) as seen:
        model(rows, rows)
    torch.testing.assert_close(seen[0].weights, model.weights(rows, rows))


def test_one_sentence_of_several_may_gather_alone():
    def alone(q, k, v):
        return (q @ k.mT / 2).softmax(-1)[1] @ v[1]

    model, rows = Written(alone), torch.randn(2, 5, 12)
    with watch(model) as seen:
        model(rows, rows)
    torch.testing.assert_close(seen[0].weights, model.weights(rows, rows)[1:])


@pytest.mark.parametrize("batch", [2, 3])  # there are three heads
def test_one_head_of_several_may_gather_alone(batch):
    def alone(q, k, v):
        return (q @ k.mT / 2).softmax(-1)[:, 1] @ v[:, 1]

    model, rows = Written(alone), torch.randn(batch, 5, 12)
    with watch(model) as seen:
        model(rows, rows)
    torch.testing.assert_close(seen[0].weights, model.weights(rows, rows)[:, 1:2])


def test_values_are_measured():
    model, rows = Written(by_matmul), torch.randn(2, 5, 12)
    with watch(model) as seen:
        model(rows, rows)
    values = model.v(rows).unflatten(-1, (3, 4)).transpose(1, 2)
    torch.testing.assert_close(seen[0].norms, values.norm(dim=-1))


def test_what_is_masked_after_softmax_counts_as_masked():
    def masked(q, k, v):
        weights = (q @ k.mT / 2).softmax(-1)
        return weights.masked_fill(torch.ones(5, 5).triu(1).bool(), 0.0) @ v

    model, rows = Written(masked), torch.randn(2, 5, 12)
    with watch(model) as seen:
        model(rows, rows)
    assert seen[0].kind == "causal"
    torch.testing.assert_close(seen[0].weights, model.weights(rows, rows).tril())


def test_a_sink_that_is_cut_off_leaves_rows_below_one():
    def sink(q, k, v):
        scores = torch.cat([q @ k.mT / 2, torch.ones(2, 3, 5, 1)], dim=-1)
        return scores.softmax(-1)[..., :-1] @ v

    model, rows = Written(sink), torch.randn(2, 5, 12)
    with watch(model) as seen:
        model(rows, rows)
    assert seen[0].weights.shape == (2, 3, 5, 5)
    assert seen[0].weights.sum(-1).mean() < 0.99


class Bahdanau(nn.Module):
    """The decoder of a thousand tutorials: one look for each step."""

    def __init__(self, how):
        super().__init__()
        self.how = how
        self.w, self.u, self.v = nn.Linear(6, 8), nn.Linear(12, 8), nn.Linear(8, 1)
        self.cell = nn.GRUCell(12, 6)

    def forward(self, memory, steps=4):
        state, found = torch.zeros(2, 6), []
        for _ in range(steps):
            scores = self.v(torch.tanh(self.w(state)[:, None] + self.u(memory)))
            weights = scores.softmax(dim=1)
            found.append(weights[..., 0].detach())
            state = self.cell(self.how(weights, memory), state)
        return torch.stack(found, dim=1)


@pytest.mark.parametrize("way", ["product and sum", "bmm", "turned bmm"])
def test_a_decoder_that_looks_step_by_step_is_one_map(way):
    ways = {
        "product and sum": lambda w, m: (w * m).sum(1),
        "bmm": lambda w, m: torch.bmm(w.transpose(1, 2), m)[:, 0],
        "turned bmm": lambda w, m: torch.bmm(m.transpose(1, 2), w)[..., 0],
    }
    model, memory = Bahdanau(ways[way]), torch.randn(2, 7, 12)
    with watch(model) as seen:
        expected = model(memory)
    torch.testing.assert_close(seen[0].weights[:, 0], expected)
    assert seen[0].kind == "cross"
    assert [look.steps for look in seen] == [4]


def test_other_uses_of_softmax_are_no_looks():
    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(9, 12)

        def forward(self, rows):
            likely = (rows @ self.words.weight.T).softmax(-1)
            mixed = likely @ self.words.weight
            pooled = torch.einsum("bqk,bkd", likely[None], torch.randn(1, 9, 4))  # over b, too
            return mixed, likely.max(-1), likely.softmax(0) @ torch.randn(9, 4), pooled

    model = Classifier()
    with watch(model) as seen:
        model(torch.randn(20, 12))
    assert len(seen) == 0


@pytest.mark.parametrize("how", ["to", "type_as", "expand_as"])
def test_what_takes_its_type_or_shape_from_weights_is_none(how):
    def gated(q, k, v):
        weights = (q @ k.mT / 2).softmax(-1)
        gate = getattr(torch.ones(2, 3, 5, 5), how)(weights)
        return weights @ v, gate @ v

    model, rows = Written(gated), torch.randn(2, 5, 12)
    with watch(model) as seen:
        model(rows, rows)
    assert len(seen) == 1
