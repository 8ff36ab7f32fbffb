"""What is known about the axes of one call: windows, their positions, and what is uncertain."""

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from regard.capture.axes import Origin
from regard.capture.layout.roles import Layout, Role, RowRange

Part = Literal["batch", "head", "query", "key"]


@dataclass(frozen=True, slots=True)
class WindowPositions:
    """The positions of the queries and keys of all windows.

    Attributes:
        queries: (window, query), the position of each query, or (batch, window, head, query) if
            items or heads differ; -1 for padding.
        keys: (window, key), or (batch, window, head, key).
        num_queries: number of positions of queries.
        num_keys: number of positions of keys.
        num_extra: number of keys after these that are no positions, as summaries of the text are.
        is_over_same_rows: whether queries and keys are the same rows.
        key_rows: identifies the tensor whose rows the keys are.
    """

    queries: Tensor
    keys: Tensor
    num_queries: int
    num_keys: int
    num_extra: int = 0
    is_over_same_rows: bool = False
    key_rows: object = None

    @property
    def differ_by_head(self) -> bool:
        """Whether the heads have other rows, or in another order."""
        sides = [x for x in (self.queries, self.keys) if x.ndim == 4]
        return any(not torch.equal(x, x[:, :, :1].expand_as(x)) for x in sides)

    @property
    def are_in_order(self) -> bool:
        """Whether there is a single window, of all positions in their order."""
        numbers = (torch.arange(x, device="cpu") for x in (self.num_queries, self.num_keys))
        pairs = zip(numbers, (self.queries, self.keys), strict=True)
        return not self.num_extra and all(torch.equal(x[None], own) for x, own in pairs)


@dataclass(frozen=True, slots=True)
class CallAxes:
    """What is known about the axes of one call, besides its weights.

    Attributes:
        num_windows: number of windows, which share the first axis with the batch.
        positions: of the queries and keys of windows, if these are known.
        is_over_same_rows: whether queries and keys are rows of the same axis.
        leading_keys: number of learned keys before those of the queries' own rows.
        spans: the ranges of rows, items and heads, to join chunks of one call.
        uncertain: axes whose role is a convention rather than known.
        normaliser: the function that made weights of scores.
        applied: names of what was applied to the weights after it.
        region: which part of the axes of the softmax these weights are; empty for all of it.
        softmaxes: numbers of the softmaxes that the weights come from.
        part: the axis of the softmax that these weights are a single item of, if they are.
        num_normalised_keys: number of keys that the softmax was over; 0 if it is not known.
    """

    num_windows: int = 1
    positions: WindowPositions | None = None
    is_over_same_rows: bool = False
    leading_keys: int = 0
    spans: dict[Role, RowRange] = field(default_factory=dict)
    uncertain: tuple[str, ...] = ()
    normaliser: str = "softmax"
    applied: tuple[str, ...] = ()
    region: frozenset[tuple[int, int, int, int]] = frozenset()
    softmaxes: frozenset[int] = frozenset()
    part: Part | None = None
    num_normalised_keys: int = 0

    @property
    def needs_positions(self) -> bool:
        """Whether rows are not those of a text: they are in windows, or others in each head."""
        known = self.positions
        return self.num_windows > 1 or (known is not None and known.differ_by_head)

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
    positions: WindowPositions | None = None,
    normaliser: str = "softmax",
    applied: tuple[str, ...] = (),
    leading_keys: int = 0,
) -> CallAxes:
    """Derive the axes of a call from the layout of its weights and the positions of its windows."""
    is_known = positions is not None and positions.is_over_same_rows
    return CallAxes(
        layout.size("window"),
        positions,
        is_over_same_rows=is_known or bool(_roots(layout, "query") & _roots(layout, "key")),
        leading_keys=leading_keys,
        spans=layout.spans(),
        uncertain=layout.uncertain,
        normaliser=normaliser,
        applied=applied,
        region=layout.region(),
    )


def _roots(layout: Layout, role: Role) -> set[Origin]:
    rows = [p.factor for p in layout.pieces if p.role == role and p.factor]
    return {factor.origin.root for factor in rows}
