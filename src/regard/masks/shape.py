"""The shape of an attention call, as masks see it: queries, keys, batch axes and selected rows."""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from regard.errors import RegardError


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """The shape of a call's scores, and which rows of them a mask is to be materialized for.

    Attributes:
        queries: number of queries.
        keys: number of keys.
        batch: sizes of the axes before (query, key). From two on, the last of them is the head.
        offset: index of the key at the first query's own position, known with a cache.
        device: where masks are materialized.
        row_start: first query of the selected rows.
        row_count: number of selected rows; None for all.

    Example:
        >>> from regard.masks import causal
        >>> shape = AttentionShape(queries=3, keys=3)
        >>> causal().materialize(shape.with_rows(1, 1))
        tensor([[ True,  True, False]])
    """

    queries: int
    keys: int
    batch: tuple[int, ...] = ()
    offset: int | None = None
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    row_start: int = 0
    row_count: int | None = None

    @property
    def score_shape(self) -> tuple[int, ...]:
        """The shape of the scores, `(*batch, query, key)`, with all rows."""
        return (*self.batch, self.queries, self.keys)

    @property
    def batch_without_head(self) -> tuple[int, ...]:
        """The sizes of the batch axes except for the head's."""
        return self.batch[:-1] if len(self.batch) >= 2 else self.batch

    def with_rows(self, start: int, count: int) -> "AttentionShape":
        """Return the same shape with some rows selected."""
        return replace(self, row_start=start, row_count=count)

    def query_positions(self) -> Tensor:
        """Return the indices of the selected rows, as a column."""
        count = self.queries - self.row_start if self.row_count is None else self.row_count
        return torch.arange(self.row_start, self.row_start + count, device=self.device)[:, None]

    def key_positions(self) -> Tensor:
        """Return the indices of the keys, as a row."""
        return torch.arange(self.keys, device=self.device)

    def slice_rows(self, tensor: Tensor) -> Tensor:
        """Return the selected rows of a tensor whose axis -2 is the query, or of size one."""
        if self.row_count is None or tensor.shape[-2] == 1:
            return tensor
        return tensor[..., self.row_start : self.row_start + self.row_count, :]

    def insert_head_axis(self, tensor: Tensor, own_axes: int) -> Tensor:
        """Move a tensor to the device, with a head axis between its batch axes and its own.

        Args:
            tensor: `(*batch without head, *own axes)`.
            own_axes: number of trailing axes that are not batch axes.
        """
        tensor = tensor.to(self.device)
        batch_axes = tensor.ndim - own_axes
        if len(self.batch) >= 2 and batch_axes > 0:
            return tensor.unsqueeze(batch_axes)
        return tensor

    def check_sizes(self, name: str, tensor: Tensor, own: tuple[int, ...] = ()) -> None:
        """Raise unless a tensor is `(*batch without head, *own)`, or has the own axes alone."""
        actual = tuple(tensor.shape)
        expected = (*self.batch_without_head, *own)
        has_right_axes = len(actual) in (len(own), len(expected))
        if not has_right_axes or not is_broadcastable(actual, expected):
            raise RegardError(f"{name} must have the shape {expected}, but its shape is {actual}")


def is_broadcastable(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Return whether a tensor of one shape can be expanded to another.

    Example:
        >>> is_broadcastable((1, 7), (2, 5, 7)), is_broadcastable((2, 7), (2, 5, 7))
        (True, False)
    """
    return len(shape) <= len(target) and all(
        size in (1, expected) for size, expected in zip(shape[::-1], target[::-1], strict=False)
    )
