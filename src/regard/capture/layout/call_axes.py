"""What is known about the axes of one call besides its weights: windows, positions, doubts."""

from dataclasses import dataclass, field, replace
from math import prod
from typing import Literal

import torch
from torch import Tensor

from regard.capture.axes import Origin, positions
from regard.capture.layout.roles import Layout, Role, RowRange

Part = Literal["batch", "head", "query", "key"]


def row_positions(layout: Layout, role: Role) -> tuple[Tensor, int] | None:
    """Return the position (window, row) of each row of each window, and how many there are.

    Rows may be from several axes, as those of an image are: positions then count over the last one
    first. A row that is padding has position -1. None if positions are unknown.
    """
    rows = [p.factor for p in layout.pieces if p.role == role and p.factor]
    windows = [p.factor for p in layout.pieces if p.role == "window" and p.factor]
    if any(f.origin.is_feature for f in rows):
        return None
    roots = list(dict.fromkeys(f.origin.root for f in rows or windows))
    index, count = torch.zeros(1, dtype=torch.long, device="cpu"), 1
    is_padding = torch.zeros(1, dtype=torch.bool, device="cpu")
    for root in reversed(roots):
        found = positions([*windows, *rows], root)
        if found is None:
            return None
        is_padding = is_padding | (found < 0) | (found >= root.size)
        index, count = index + found * count, count * root.size
    num_windows = prod(f.size for f in windows)
    if not roots or index.numel() % num_windows:
        return None
    return index.masked_fill(is_padding, -1).reshape(num_windows, -1), count


@dataclass(frozen=True, slots=True)
class CallAxes:
    """What is known about the axes of one call, besides its weights.

    Attributes:
        num_windows: number of windows, which share the first axis with the batch.
        query_positions: (window, query), the position of each query; None if unknown.
        key_positions: (window, key).
        num_positions: number of positions of queries and keys, if these are known.
        is_over_same_rows: whether queries and keys are rows of the same axis.
        spans: the ranges of rows, items and heads, to join chunks of one call.
        uncertain: axes whose role is a convention rather than known.
        normaliser: the function that made weights of scores.
        applied: names of what was applied to the weights after it.
        region: which part of the axes of the softmax these weights are; empty for all of it.
        roots: the softmaxes that the weights come from, by number.
        part: the axis of the softmax that these weights are a single item of, if they are.
    """

    num_windows: int = 1
    query_positions: Tensor | None = None
    key_positions: Tensor | None = None
    num_positions: tuple[int, int] | None = None
    is_over_same_rows: bool = False
    spans: dict[Role, RowRange] = field(default_factory=dict)
    uncertain: tuple[str, ...] = ()
    normaliser: str = "softmax"
    applied: tuple[str, ...] = ()
    region: frozenset[tuple[int, int, int, int]] = frozenset()
    roots: frozenset[int] = frozenset()
    part: Part | None = None

    @property
    def span(self) -> RowRange | None:
        """The range of rows that the queries cover, if it is contiguous."""
        found = self.spans.get("query")
        return found if found is not None and found.stride == 1 else None

    def are_within(self, others: "CallAxes") -> bool:
        """Return whether weights of the same softmax are a part of others, or the same."""
        if self.part is not None or others.part is not None:
            return False
        own = {origin: (start, end, stride) for origin, start, end, stride in self.region}
        for origin, first, end, stride in others.region:
            start, stop, step = own.get(origin, (-1, -1, -1))
            if step != stride or start < first or stop > end or (start - first) % stride:
                return False
        return set(others.applied) <= set(self.applied)


PLAIN_AXES = CallAxes()


def call_axes(
    layout: Layout,
    values: Layout | None,
    normaliser: str = "softmax",
    applied: tuple[str, ...] = (),
) -> CallAxes:
    """Derive the axes of a call from the layouts of its weights and values."""
    axes = CallAxes(
        layout.size("window"),
        is_over_same_rows=bool(_roots(layout, "query") & _roots(layout, "key")),
        spans=layout.spans(),
        uncertain=layout.uncertain,
        normaliser=normaliser,
        applied=applied,
        region=layout.region(),
    )
    if axes.num_windows == 1:
        return axes
    queries = row_positions(layout, "query")
    keys = None if values is None else row_positions(values, "key")
    if queries is None or keys is None or len(keys[0]) != len(queries[0]):
        return axes
    return replace(
        axes,
        query_positions=queries[0],
        key_positions=keys[0],
        num_positions=(queries[1], keys[1]),
    )


def _roots(layout: Layout, role: Role) -> set[Origin]:
    rows = [p.factor for p in layout.pieces if p.role == role and p.factor]
    return {factor.origin.root for factor in rows}
