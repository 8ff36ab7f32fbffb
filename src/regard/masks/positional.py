"""Masks by distance: causal looks back, window looks near."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from regard.masks.base import Mask, shown
from regard.masks.shape import AttentionShape

Align = Literal["first", "last"] | int | Sequence[int] | Tensor | None
"""Where the first query stands among the keys: on the first key; so that the last query
stands on the last key; on a given key; or on one key per sentence."""


def causal(align: Align = None) -> Mask:
    """Let each query look at the keys up to its own position."""
    return _Causal(_checked(align))


def window(behind: int, ahead: int | None = None, align: Align = None) -> Mask:
    """Let each query look at most `behind` keys back and `ahead` keys on (as many, by default)."""
    for name, reach in (("behind", behind), ("ahead", ahead)):
        if reach is not None and reach < 0:
            raise ValueError(f"{name} must be 0 or more, but it is {reach}; 0 sees only itself")
    return _Window(behind, behind if ahead is None else ahead, _checked(align))


@dataclass(frozen=True, repr=False, eq=False)
class _Causal(Mask):
    align: Align

    def materialize(self, frame: AttentionShape) -> Tensor:
        return frame.key_positions() <= frame.query_positions() + offset("causal", self, frame)

    def check(self, frame: AttentionShape) -> None:
        _check_align("causal", self, frame)

    def is_all_true(self, frame: AttentionShape) -> bool:
        start = offset("causal", self, frame)
        return isinstance(start, int) and start + frame.row_start >= frame.keys - 1

    def __repr__(self) -> str:
        return f"causal({_shown(self.align)})"


@dataclass(frozen=True, repr=False, eq=False)
class _Window(Mask):
    behind: int
    ahead: int
    align: Align

    def materialize(self, frame: AttentionShape) -> Tensor:
        own_place = frame.query_positions() + offset("window", self, frame)
        distance = frame.key_positions() - own_place
        return (distance >= -self.behind) & (distance <= self.ahead)

    def check(self, frame: AttentionShape) -> None:
        _check_align("window", self, frame)

    def __repr__(self) -> str:
        ahead = "" if self.ahead == self.behind else f"ahead={self.ahead}"
        return f"window({', '.join(filter(None, (str(self.behind), ahead, _shown(self.align))))})"


def is_plain_causal(mask: Mask | None, frame: AttentionShape) -> bool:
    """Tell whether the mask is just `causal()` with its corner at the first key."""
    if not isinstance(mask, _Causal):
        return False
    start = offset("causal", mask, frame)
    return isinstance(start, int) and start == 0


def offset(word: str, mask: _Causal | _Window, frame: AttentionShape) -> int | Tensor:
    """Find the key on which the first query stands."""
    align = mask.align
    if isinstance(align, Tensor):
        return frame.insert_head_axis(align, own_axes=0)[..., None, None]
    if align == "last":
        return frame.keys - frame.queries
    if align == "first" or (align is None and frame.offset is None):
        if align is None and frame.queries != frame.keys:
            raise ValueError(
                f"{word}() needs as many queries as keys, or align= to say how they line up, but "
                f"there are {frame.queries} queries and {frame.keys} keys; align='first' puts the "
                "first query on the first key, align='last' the last query on the last key"
            )
        return 0
    return frame.offset if align is None else align  # type: ignore[return-value]


def _check_align(word: str, mask: _Causal | _Window, frame: AttentionShape) -> None:
    if isinstance(mask.align, Tensor):
        frame.check_sizes("align", mask.align)
    offset(word, mask, frame)


def _checked(align: Align) -> Align:
    if isinstance(align, list | tuple):
        align = torch.as_tensor(align)
    if isinstance(align, Tensor):
        if not align.is_floating_point():
            return align
    elif align is None or isinstance(align, int) or align in ("first", "last"):
        return align
    raise ValueError(
        f"align must be 'first', 'last', a key's number or one per sentence, but it is {align!r}"
    )


def _shown(align: Align) -> str:
    if align is None:
        return ""
    return f"align={shown(align) if isinstance(align, Tensor) else repr(align)}"
