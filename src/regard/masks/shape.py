"""The rectangle of pairs that a mask is asked about."""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """So many queries over so many keys, and the rows of it that are wanted."""

    queries: int
    keys: int
    batch: tuple[int, ...] = ()  # the axes before (query, key); from two on, the last is the head
    offset: int | None = None  # the key on which the first query stands, known from a cache
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    row_start: int = 0  # the first row that is wanted
    row_count: int | None = None  # how many rows are wanted; None for all

    @property
    def score_shape(self) -> tuple[int, ...]:
        """Give the shape of all the scores of this frame."""
        return (*self.batch, self.queries, self.keys)

    @property
    def batch_without_head(self) -> tuple[int, ...]:
        """Give the batch axes that are not the head's."""
        return self.batch[:-1] if len(self.batch) >= 2 else self.batch

    def with_rows(self, start: int, count: int) -> "AttentionShape":
        """Ask for some rows only."""
        return replace(self, row_start=start, row_count=count)

    def query_positions(self) -> Tensor:
        """Number the wanted rows, as a column."""
        rows = self.queries - self.row_start if self.row_count is None else self.row_count
        return torch.arange(self.row_start, self.row_start + rows, device=self.device)[:, None]

    def key_positions(self) -> Tensor:
        """Number the keys, as a row."""
        return torch.arange(self.keys, device=self.device)

    def slice_rows(self, rows: Tensor) -> Tensor:
        """Cut the wanted rows from a tensor whose axis -2 is the query."""
        if self.row_count is None or rows.shape[-2] == 1:
            return rows
        return rows[..., self.row_start : self.row_start + self.row_count, :]

    def insert_head_axis(self, numbers: Tensor, own_axes: int) -> Tensor:
        """Insert the head axis between a tensor's sentence axes and its own axes."""
        numbers = numbers.to(self.device)
        sentence_axes = numbers.ndim - own_axes
        if len(self.batch) >= 2 and sentence_axes > 0:
            return numbers.unsqueeze(sentence_axes)
        return numbers

    def check_sizes(self, name: str, numbers: Tensor, own: tuple[int, ...] = ()) -> None:
        """Raise unless a tensor's sentence axes and own axes have the sizes of this frame."""
        given = tuple(numbers.shape)
        wanted = (*self.batch_without_head, *own)
        if len(given) not in (len(own), len(wanted)) or not broadcasts(given, wanted):
            raise ValueError(f"{name} must have the shape {wanted}, but its shape is {given}")


def broadcasts(given: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Tell whether a shape can be stretched to another one."""
    return len(given) <= len(wanted) and all(
        have in (1, want) for have, want in zip(given[::-1], wanted[::-1], strict=False)
    )
