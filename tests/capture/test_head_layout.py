"""Heads that share an axis with the batch, as textbooks and older libraries write them."""

import math

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention, softmax

from regard import watch
from regard.capture.head_layout import NO_HEADS, Heads, folded

HEADS, WIDTH, LENGTH = 4, 12, 5


def batch_first(rows):
    rows = rows.reshape(*rows.shape[:2], HEADS, -1).permute(0, 2, 1, 3)
    return rows.reshape(-1, *rows.shape[2:])


def batch_first_copied(rows):
    rows = rows.view(*rows.shape[:2], HEADS, -1).transpose(1, 2).contiguous()
    return rows.view(-1, *rows.shape[2:])


def heads_first_copied(rows):
    rows = rows.view(*rows.shape[:2], HEADS, -1).permute(2, 0, 1, 3).contiguous()
    return rows.view(-1, *rows.shape[2:])


def position_first(rows):
    rows = rows.transpose(0, 1).contiguous()
    return rows.view(rows.shape[0], rows.shape[1] * HEADS, -1).transpose(0, 1)


FOLDS = [batch_first, batch_first_copied, heads_first_copied, position_first]


class Folding(nn.Module):
    """Multi-head attention in three axes, by products or by torch's kernel."""

    def __init__(self, fold, fused=False, masked=False):
        super().__init__()
        self.fold, self.fused, self.masked = fold, fused, masked
        self.project = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, rows):
        queries, keys, values = map(self.fold, self.project(rows).chunk(3, dim=-1))
        if self.fused:
            mask = torch.ones(len(queries), LENGTH, LENGTH).tril().bool() if self.masked else None
            return scaled_dot_product_attention(queries, keys, values, mask)
        scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(WIDTH / HEADS)
        if self.masked:  # in four axes, and back
            scores = scores.view(-1, HEADS, LENGTH, LENGTH)
            later = torch.ones(LENGTH, LENGTH).triu(1).bool()
            scores = scores.masked_fill(later, -torch.inf).view(-1, LENGTH, LENGTH)
        return torch.bmm(softmax(scores, dim=-1), values)


def by_the_formula(model, rows):
    queries, keys, _ = model.project(rows).chunk(3, dim=-1)
    queries, keys = (x.unflatten(-1, (HEADS, -1)).transpose(1, 2) for x in (queries, keys))
    scores = queries @ keys.mT / math.sqrt(WIDTH / HEADS)
    if model.masked:
        scores = scores + torch.full((LENGTH, LENGTH), -torch.inf).triu(1)
    return scores.softmax(dim=-1)


@pytest.mark.parametrize("batch", [1, 3, HEADS])  # as many sentences as heads are not confused
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("fold", FOLDS)
@torch.no_grad()
def test_heads_folded_into_the_batch_are_told_apart(fold, fused, batch):
    model, rows = Folding(fold, fused), torch.randn(batch, LENGTH, WIDTH) * 3
    with watch(model) as seen:
        watched = model(rows)
    assert torch.equal(watched, model(rows))
    (look,) = seen
    torch.testing.assert_close(look.weights, by_the_formula(model, rows))
    assert look.kind == "self" and look.norms.shape == (batch, HEADS, LENGTH)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("fold", [batch_first, position_first])
@torch.no_grad()
def test_with_a_mask_too(fold, fused):
    model, rows = Folding(fold, fused, masked=True), torch.randn(3, LENGTH, WIDTH) * 3
    with watch(model) as seen:
        model(rows)
    torch.testing.assert_close(seen[0].weights, by_the_formula(model, rows))
    assert seen[0].kind == "causal"


@torch.no_grad()
def test_projected_together_and_unbound():
    class Unbinding(Folding):
        def forward(self, rows):
            joint = self.project(rows).reshape(len(rows), LENGTH, 3, HEADS, -1)
            joint = joint.permute(2, 0, 3, 1, 4).reshape(3, len(rows) * HEADS, LENGTH, -1)
            queries, keys, values = joint.unbind(0)
            scores = (queries * math.sqrt(HEADS / WIDTH)) @ keys.transpose(-2, -1)
            return softmax(scores, dim=-1) @ values

    model, rows = Unbinding(None), torch.randn(3, LENGTH, WIDTH) * 3
    with watch(model) as seen:
        model(rows)
    torch.testing.assert_close(seen[0].weights, by_the_formula(model, rows))


@torch.no_grad()
def test_one_head_after_another_is_a_head_and_a_batch():
    class Looping(Folding):
        def forward(self, rows):
            parts = (x.chunk(HEADS, dim=-1) for x in self.project(rows).chunk(3, dim=-1))
            return [softmax(q @ k.mT, dim=-1) @ v for q, k, v in zip(*parts, strict=True)]

    model = Looping(None)
    with watch(model) as seen:
        model(torch.randn(HEADS, LENGTH, WIDTH))
    assert [look.sizes for look in seen] == [(HEADS, LENGTH, LENGTH)] * HEADS
    assert {look.every for look in seen} == {1}


@torch.no_grad()
def test_more_positions_of_less_width_are_no_heads():
    class Finer(nn.Module):
        def __init__(self):
            super().__init__()
            self.project = nn.Linear(WIDTH, WIDTH)

        def forward(self, rows):
            rows = self.project(rows).view(len(rows), 2 * LENGTH, -1)
            return softmax(rows @ rows.mT, dim=-1) @ rows

    model = Finer()
    with watch(model) as seen:
        model(torch.randn(2, LENGTH, WIDTH))
    assert seen[0].every == 1 and seen[0].sizes == (2, 2 * LENGTH, 2 * LENGTH)


class Along(nn.Module):
    """One head along time, whose sentences and patches share an axis."""

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, rows):
        batch, time, patches, _ = rows.shape
        parts = self.project(rows).reshape(batch, time, patches, 3, WIDTH).unbind(3)
        return scaled_dot_product_attention(
            *(x.transpose(1, 2).reshape(batch * patches, time, WIDTH) for x in parts)
        )


class Windows(nn.Module):
    """One head within windows of what a convolution gave, whose positions come last."""

    def __init__(self):
        super().__init__()
        self.project = nn.Conv1d(WIDTH, WIDTH, 1)

    def forward(self, rows):
        rows = self.project(rows.flatten(1, 2).mT)
        windows = rows.view(len(rows), WIDTH, 4, -1).permute(0, 2, 3, 1)
        windows = windows.reshape(4 * len(rows), -1, WIDTH)
        return softmax(windows @ windows.mT, dim=-1) @ windows


@pytest.mark.parametrize("model", [Along, Windows])
@pytest.mark.parametrize("patches", [3, 5])
@torch.no_grad()
def test_what_else_shares_an_axis_with_the_batch_is_no_head(model, patches):
    model = model()
    with watch(model) as seen:
        model(torch.randn(2, 4, patches, WIDTH))
    assert seen[0].every == 1


@pytest.mark.parametrize("batch", [2, HEADS])
@torch.no_grad()
def test_heads_that_are_taken_one_by_one_are_no_longer_folded(batch):
    class Chunks(Folding):
        def forward(self, rows):
            parts = (self.fold(x).chunk(HEADS) for x in self.project(rows).chunk(3, dim=-1))
            return [softmax(q @ k.mT, dim=-1) @ v for q, k, v in zip(*parts, strict=True)]

    model = Chunks(heads_first_copied)
    with watch(model) as seen:
        model(torch.randn(batch, LENGTH, WIDTH))
    assert [look.weights.shape[:2] for look in seen] == [(batch, 1)] * HEADS


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("fused", [False, True])
@torch.no_grad()
def test_heads_before_the_batch_are_brought_behind_it(fused, masked):
    class First(Folding):
        def forward(self, rows):
            queries, keys, values = (
                x.unflatten(-1, (HEADS, -1)).permute(2, 0, 1, 3)
                for x in self.project(rows).chunk(3, dim=-1)
            )
            seen = torch.ones(LENGTH, LENGTH).tril().bool()
            if self.fused:
                mask = seen.expand(1, len(rows), -1, -1) if self.masked else None
                return scaled_dot_product_attention(queries, keys, values, mask)
            scores = queries @ keys.mT / math.sqrt(WIDTH / HEADS)
            scores = scores.masked_fill(~seen, -torch.inf) if self.masked else scores
            return softmax(scores, dim=-1) @ values

    model, rows = First(None, fused, masked), torch.randn(3, LENGTH, WIDTH) * 3
    with watch(model) as seen:
        model(rows)
    torch.testing.assert_close(seen[0].weights, by_the_formula(model, rows))
    assert seen[0].norms.shape == (3, HEADS, LENGTH)


@torch.no_grad()
def test_heads_of_a_text_without_a_batch_are_heads():
    class Alone(Folding):
        def forward(self, rows):
            queries, keys, values = (
                x.view(LENGTH, HEADS, -1).transpose(0, 1)
                for x in self.project(rows).chunk(3, dim=-1)
            )
            scores = queries @ keys.mT / math.sqrt(WIDTH / HEADS)
            return softmax(scores, dim=-1) @ values

    model, rows = Alone(None), torch.randn(LENGTH, WIDTH) * 3
    with watch(model) as seen:
        model(rows)
    torch.testing.assert_close(seen[0].weights, by_the_formula(model, rows[None]))


def test_heads_are_followed_axis_by_axis():
    rows = torch.randn(2, 5, 12)
    parted = rows.view(2, 5, 4, 3)
    heads = NO_HEADS.after("view", rows, parted)
    assert heads == Heads(4, -2)
    turned = parted.transpose(1, 2)
    heads = heads.after("transpose", parted, turned)
    assert heads == Heads(4, -3)
    joined = turned.flatten(0, 1)
    assert heads.after("flatten", turned, joined) == folded(4)
    assert folded(4).after("view", joined, turned) == Heads(4, -3)
    assert folded(4).after("contiguous", joined, joined) == folded(4)


def test_one_query_of_a_step_is_not_taken_for_a_head():
    scores = torch.randn(8, 1, 6)
    apart = scores.view(2, 4, 1, 6)
    assert folded(4).after("view", scores, apart) == Heads(4, -3)
    assert NO_HEADS.after("view", scores, apart) == NO_HEADS
