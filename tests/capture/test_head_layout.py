"""Heads folded into the batch axis, as textbooks and older libraries write them."""

import math

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention, softmax

from regard import watch

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


FOLDINGS = [batch_first, batch_first_copied, heads_first_copied, position_first]


class FoldedAttention(nn.Module):
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


def weights_by_formula(model, rows):
    queries, keys, _ = model.project(rows).chunk(3, dim=-1)
    queries, keys = (x.unflatten(-1, (HEADS, -1)).transpose(1, 2) for x in (queries, keys))
    scores = queries @ keys.mT / math.sqrt(WIDTH / HEADS)
    if model.masked:
        scores = scores + torch.full((LENGTH, LENGTH), -torch.inf).triu(1)
    return scores.softmax(dim=-1)


@pytest.mark.parametrize("batch", [1, 3, HEADS])  # as many batch items as heads
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("fold", FOLDINGS)
@torch.no_grad()
def test_heads_folded_into_the_batch_are_unfolded(fold, fused, batch):
    model, rows = FoldedAttention(fold, fused), torch.randn(batch, LENGTH, WIDTH) * 3
    with watch(model) as capture:
        watched = model(rows)
    assert torch.equal(watched, model(rows))
    (captured,) = capture
    torch.testing.assert_close(captured.weights, weights_by_formula(model, rows))
    assert captured.kind == "self" and captured.value_norms.shape == (batch, HEADS, LENGTH)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("fold", [batch_first, position_first])
@torch.no_grad()
def test_masked_folded_heads_are_unfolded(fold, fused):
    model, rows = FoldedAttention(fold, fused, masked=True), torch.randn(3, LENGTH, WIDTH) * 3
    with watch(model) as capture:
        model(rows)
    torch.testing.assert_close(capture[0].weights, weights_by_formula(model, rows))
    assert capture[0].kind == "causal"


@torch.no_grad()
def test_joint_projection_that_is_unbound_is_unfolded():
    class JointProjection(FoldedAttention):
        def forward(self, rows):
            joint = self.project(rows).reshape(len(rows), LENGTH, 3, HEADS, -1)
            joint = joint.permute(2, 0, 3, 1, 4).reshape(3, len(rows) * HEADS, LENGTH, -1)
            queries, keys, values = joint.unbind(0)
            scores = (queries * math.sqrt(HEADS / WIDTH)) @ keys.transpose(-2, -1)
            return softmax(scores, dim=-1) @ values

    model, rows = JointProjection(None), torch.randn(3, LENGTH, WIDTH) * 3
    with watch(model) as capture:
        model(rows)
    torch.testing.assert_close(capture[0].weights, weights_by_formula(model, rows))


@torch.no_grad()
def test_heads_computed_in_a_loop_are_single_heads():
    class LoopOverHeads(FoldedAttention):
        def forward(self, rows):
            parts = (x.chunk(HEADS, dim=-1) for x in self.project(rows).chunk(3, dim=-1))
            return [softmax(q @ k.mT, dim=-1) @ v for q, k, v in zip(*parts, strict=True)]

    model = LoopOverHeads(None)
    with watch(model) as capture:
        model(torch.randn(HEADS, LENGTH, WIDTH))
    assert [x.weights.shape for x in capture] == [(HEADS, 1, LENGTH, LENGTH)] * HEADS
    assert {x.num_heads for x in capture} == {1}


@torch.no_grad()
def test_reshape_to_more_positions_makes_no_heads():
    class FinerPositions(nn.Module):
        def __init__(self):
            super().__init__()
            self.project = nn.Linear(WIDTH, WIDTH)

        def forward(self, rows):
            rows = self.project(rows).view(len(rows), 2 * LENGTH, -1)
            return softmax(rows @ rows.mT, dim=-1) @ rows

    model = FinerPositions()
    with watch(model) as capture:
        model(torch.randn(2, LENGTH, WIDTH))
    assert capture[0].weights.shape == (2, 1, 2 * LENGTH, 2 * LENGTH)


class TemporalAttention(nn.Module):
    """One head along time, with the patches folded into the batch."""

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, rows):
        batch, time, patches, _ = rows.shape
        parts = self.project(rows).reshape(batch, time, patches, 3, WIDTH).unbind(3)
        return scaled_dot_product_attention(
            *(x.transpose(1, 2).reshape(batch * patches, time, WIDTH) for x in parts)
        )


class WindowAttention(nn.Module):
    """One head within windows of a convolution's output, whose positions come last."""

    def __init__(self):
        super().__init__()
        self.project = nn.Conv1d(WIDTH, WIDTH, 1)

    def forward(self, rows):
        rows = self.project(rows.flatten(1, 2).mT)
        windows = rows.view(len(rows), WIDTH, 4, -1).permute(0, 2, 3, 1)
        windows = windows.reshape(4 * len(rows), -1, WIDTH)
        return softmax(windows @ windows.mT, dim=-1) @ windows


@pytest.mark.parametrize("model", [TemporalAttention, WindowAttention])
@pytest.mark.parametrize("patches", [3, 5])
@torch.no_grad()
def test_other_axes_folded_into_the_batch_are_no_heads(model, patches):
    model = model()
    with watch(model) as capture:
        model(torch.randn(2, 4, patches, WIDTH))
    assert capture[0].num_heads == 1


@pytest.mark.parametrize("batch", [2, HEADS])
@torch.no_grad()
def test_chunks_of_folded_heads_are_single_heads(batch):
    class ChunkedHeads(FoldedAttention):
        def forward(self, rows):
            parts = (self.fold(x).chunk(HEADS) for x in self.project(rows).chunk(3, dim=-1))
            return [softmax(q @ k.mT, dim=-1) @ v for q, k, v in zip(*parts, strict=True)]

    model = ChunkedHeads(heads_first_copied)
    with watch(model) as capture:
        model(torch.randn(batch, LENGTH, WIDTH))
    assert [x.weights.shape[:2] for x in capture] == [(batch, 1)] * HEADS


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("fused", [False, True])
@torch.no_grad()
def test_leading_heads_are_moved_behind_the_batch(fused, masked):
    class LeadingHeads(FoldedAttention):
        def forward(self, rows):
            queries, keys, values = (
                x.unflatten(-1, (HEADS, -1)).permute(2, 0, 1, 3)
                for x in self.project(rows).chunk(3, dim=-1)
            )
            visible = torch.ones(LENGTH, LENGTH).tril().bool()
            if self.fused:
                mask = visible.expand(1, len(rows), -1, -1) if self.masked else None
                return scaled_dot_product_attention(queries, keys, values, mask)
            scores = queries @ keys.mT / math.sqrt(WIDTH / HEADS)
            scores = scores.masked_fill(~visible, -torch.inf) if self.masked else scores
            return softmax(scores, dim=-1) @ values

    model, rows = LeadingHeads(None, fused, masked), torch.randn(3, LENGTH, WIDTH) * 3
    with watch(model) as capture:
        model(rows)
    torch.testing.assert_close(capture[0].weights, weights_by_formula(model, rows))
    assert capture[0].value_norms.shape == (3, HEADS, LENGTH)


@torch.no_grad()
def test_heads_of_unbatched_attention_are_heads():
    class UnbatchedAttention(FoldedAttention):
        def forward(self, rows):
            queries, keys, values = (
                x.view(LENGTH, HEADS, -1).transpose(0, 1)
                for x in self.project(rows).chunk(3, dim=-1)
            )
            scores = queries @ keys.mT / math.sqrt(WIDTH / HEADS)
            return softmax(scores, dim=-1) @ values

    model, rows = UnbatchedAttention(None), torch.randn(LENGTH, WIDTH) * 3
    with watch(model) as capture:
        model(rows)
    torch.testing.assert_close(capture[0].weights, weights_by_formula(model, rows[None]))
