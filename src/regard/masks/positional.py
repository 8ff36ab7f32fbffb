"""Masks by position: causal and sliding window."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Literal

import torch
from torch import Tensor

from regard._support.arguments import to_integer
from regard.errors import RegardError
from regard.masks.base import Mask, format_values, to_tensor
from regard.masks.shape import AttentionShape

MAX_REACH = 2**63 - 1  # what tensors of positions are compared with

Align = Literal["first", "last"] | int | Sequence[int] | Tensor | None
"""At which key the first query is: "first", the first key; "last", such that the last query is at
the last key; the index of a key; or one index per batch item. None: the call's offset, or the first
key if there are as many queries as keys."""

_CheckedAlign = Literal["first", "last"] | int | Tensor | None


def causal(align: Align = None) -> Mask:
    """Allow each query to attend to the keys up to its own position.

    Args:
        align: at which key the first query is, needed if queries and keys differ in
            number without a cache: "first", "last", an index, or one index per batch item.

    Raises:
        RegardError: if `align` is none of these; or later, in a call that it does not fit.

    Example:
        >>> causal().to_tensor(3).int()
        tensor([[1, 0, 0],
                [1, 1, 0],
                [1, 1, 1]], dtype=torch.int32)
        >>> causal(align="last").to_tensor(queries=1, keys=3)
        tensor([[True, True, True]])
    """
    return _Causal(_check_align(align))


def window(behind: int, ahead: int | None = None, align: Align = None) -> Mask:
    """Allow each query to attend to keys near its own position: local attention.

    Args:
        behind: number of keys before the query's own position.
        ahead: number of keys after it; as many as behind by default.
        align: as for `causal`.

    Raises:
        RegardError: if `behind` or `ahead` is negative, or `align` is invalid.
        TypeError: if `behind` or `ahead` is not an integer.

    Example:
        >>> window(1, ahead=0).to_tensor(3).int()
        tensor([[1, 0, 0],
                [1, 1, 0],
                [0, 1, 1]], dtype=torch.int32)
    """
    behind = _check_reach("behind", behind)
    ahead = behind if ahead is None else _check_reach("ahead", ahead)
    return _Window(behind, ahead, _check_align(align))


@dataclass(frozen=True, repr=False, eq=False)
class _Causal(Mask):
    align: _CheckedAlign

    def materialize(self, shape: AttentionShape) -> Tensor:
        return shape.key_positions() <= shape.query_positions() + _first_key("causal", self, shape)

    def check(self, shape: AttentionShape) -> None:
        _check_fits("causal", self, shape)

    def is_all_true(self, shape: AttentionShape) -> bool:
        start = _first_key("causal", self, shape)
        return isinstance(start, int) and start + shape.row_start >= shape.keys - 1

    def is_causal(self, shape: AttentionShape) -> bool:
        start = _first_key("causal", self, shape)
        return isinstance(start, int) and start == 0

    def __repr__(self) -> str:
        return f"causal({_format_align(self.align)})"


@dataclass(frozen=True, repr=False, eq=False)
class _Window(Mask):
    behind: int
    ahead: int
    align: _CheckedAlign

    def materialize(self, shape: AttentionShape) -> Tensor:
        own_positions = shape.query_positions() + _first_key("window", self, shape)
        distance = shape.key_positions() - own_positions
        return (distance >= -self.behind) & (distance <= self.ahead)

    def check(self, shape: AttentionShape) -> None:
        _check_fits("window", self, shape)

    def __repr__(self) -> str:
        ahead = "" if self.ahead == self.behind else f"ahead={self.ahead}"
        parts = (str(self.behind), ahead, _format_align(self.align))
        return f"window({', '.join(filter(None, parts))})"


def _first_key(name: str, mask: _Causal | _Window, shape: AttentionShape) -> int | Tensor:
    """Return the index of the key at the first query's own position."""
    align = mask.align
    if isinstance(align, Tensor):
        return shape.insert_head_axis(align, own_axes=0)[..., None, None]
    if align == "last":
        return shape.keys - shape.queries
    if isinstance(align, int):
        return align
    if align == "first":
        return 0
    if shape.offset is not None:
        return shape.offset
    if shape.queries != shape.keys:
        raise RegardError(
            f"{name}() needs as many queries as keys, or align= to say how they line up, but "
            f"there are {shape.queries} queries and {shape.keys} keys; align='first' puts the "
            "first query on the first key, align='last' the last query on the last key"
        )
    return 0


def _check_fits(name: str, mask: _Causal | _Window, shape: AttentionShape) -> None:
    if isinstance(mask.align, Tensor):
        shape.check_sizes("align", mask.align)
    _first_key(name, mask, shape)


def _check_reach(name: str, count: int) -> int:
    count = to_integer(name, count)
    if count < 0:
        raise RegardError(
            f"{name} must be 0 or more, but it is {count}; 0 allows the query's own key alone"
        )
    if count > MAX_REACH:
        raise RegardError(f"{name} must be at most {MAX_REACH}, but it is {count}")
    return count


def _check_align(align: Align) -> _CheckedAlign:
    if isinstance(align, Integral) and not isinstance(align, bool):  # of numpy, too
        return int(align)
    if isinstance(align, list | tuple):
        align = to_tensor("align", align)
    if isinstance(align, Tensor):
        if not align.is_floating_point() and align.dtype != torch.bool:
            return align
    elif align is None or (isinstance(align, str) and align in ("first", "last")):
        return align
    raise RegardError(
        f"align must be 'first', 'last', a key's index or one per batch item, but it is {align!r}"
    )


def _format_align(align: _CheckedAlign) -> str:
    if align is None:
        return ""
    return f"align={format_values(align) if isinstance(align, Tensor) else repr(align)}"
