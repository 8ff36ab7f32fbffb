"""Where tensors come from: whether queries and keys were projected from the same rows."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from regard.capture.head_layout import NO_HEADS, Heads

LAYOUT = {
    *("view", "reshape", "view_as", "transpose", "permute", "movedim", "swapaxes", "unsqueeze"),
    *("squeeze", "flatten", "unflatten", "expand", "contiguous", "clone", "detach", "chunk"),
    *("split", "unbind", "narrow", "select", "__getitem__", "to", "type", "type_as", "float"),
    *("half", "bfloat16", "double", "repeat_interleave", "expand_as", "tensor_split"),
    *("T", "mT", "H", "mH"),
}
"""Names of functions that move numbers without changing them."""

_PRODUCTS = {"matmul", "__matmul__", "__rmatmul__", "bmm", "einsum", "baddbmm", "mm"}
_GROWS = {"cat", "concat", "concatenate", "index_copy", "index_copy_", "slice_scatter"}
_GROWS |= {"__setitem__", "copy_", "scatter", "scatter_"}
_MOST = 8  # origins that are remembered; keys from a cache gain one with every step

Origins = frozenset[int]


@dataclass(slots=True)
class Mark:
    """What is known of a tensor."""

    serial: int | None = None  # the rows that it is, however laid out
    origins: Origins = frozenset()  # the serials of what it was projected from
    parents: Origins = frozenset()  # and of what that was projected from: some project twice
    pair: tuple[Origins, Origins] | None = None  # of scores: the origins of both sides
    grown: bool = False  # rows were put beside others, as in a cache; of scores: on one side only
    heads: Heads = NO_HEADS


class Lineage:
    """Follows tensors through the functions they pass."""

    def __init__(self) -> None:
        self._marks: Any = WeakTensorKeyDictionary()
        self._serials = count()

    def follow(self, name: str, args: tuple[Any, ...], out: Any) -> None:
        """Mark what a function gave by the marks of what it took."""
        given = list(tensors(args))
        if not given:
            return
        out = given[0] if name == "__setitem__" else out
        rows = _projected(name, given)
        if rows is not None:
            self._mark_projection(rows, out)
        elif name in LAYOUT:
            serial, mark = self._serial(given[0]), self._marks[given[0]]
            for laid_out in tensors((out,)):
                heads = mark.heads.after(name, given[0], laid_out)
                self._mark(laid_out, replace(mark, serial=serial, heads=heads))
        else:
            self._mark_mixture(name, given, out)

    def origins(self, tensor: Tensor) -> Origins:
        """Tell what a tensor was projected from."""
        mark: Mark | None = self._marks.get(tensor)
        return frozenset() if mark is None else mark.origins | mark.parents

    def grown(self, keys: Tensor) -> bool:
        """Tell whether rows were put beside others since they were projected, as a cache does."""
        mark: Mark | None = self._marks.get(keys)
        return mark is not None and mark.grown

    def heads(self, rows: Tensor) -> Heads:
        """Tell what is known of the heads of rows, or of scores."""
        mark: Mark | None = self._marks.get(rows)
        return NO_HEADS if mark is None else mark.heads

    def same(self, queries: Tensor, keys: Tensor) -> bool | None:
        """Tell whether queries and keys come from the same rows; None if that is not known."""
        if queries is keys:
            return True
        sides = self.origins(queries), self.origins(keys)
        return bool(sides[0] & sides[1]) if all(sides) else None

    def same_in_scores(self, scores: Tensor) -> bool | None:
        """Tell whether scores compare rows with themselves; None if that is not known."""
        mark = self._marks.get(scores)
        if mark is None:
            return None
        if mark.pair is not None and all(mark.pair):
            return bool(mark.pair[0] & mark.pair[1])
        return len(mark.origins) == 1 if mark.origins else None

    def _mark_projection(self, rows: Tensor, out: Any) -> None:
        serial, mark = self._serial(rows), self._marks[rows]
        self._mark(out, Mark(origins=frozenset([serial]), parents=mark.origins))

    def _mark_mixture(self, name: str, given: list[Tensor], out: Any) -> None:
        marks = [mark for tensor in given if (mark := self._marks.get(tensor)) is not None]
        origins = _latest(mark.origins for mark in marks)
        parents = _latest(mark.parents for mark in marks)
        pair = next((mark.pair for mark in marks if mark.pair is not None), None)
        grown = any(mark.grown for mark in marks) or _puts_beside(name, given, out)
        if name in _PRODUCTS and pair is None and len(given) >= 2:
            pair = (self.origins(given[-2]), self.origins(given[-1]))
            grown = self.grown(given[-2]) != self.grown(given[-1])
        heads = self._heads_of(name, given, out)
        if origins or pair or grown:
            self._mark(out, Mark(None, origins, parents, pair, grown, heads))

    def _heads_of(self, name: str, given: list[Tensor], out: Any) -> Heads:
        """Find the heads that what was computed has from something it was computed from."""
        for tensor in given if isinstance(out, Tensor) else ():
            heads = self.heads(tensor)
            # an equation may lay axes out in any order
            if heads.many > 1 and (heads.folded or name != "einsum") and heads.stay(tensor, out):
                return heads
        return NO_HEADS

    def _serial(self, rows: Tensor) -> int:
        mark: Mark | None = self._marks.get(rows)
        if mark is None:
            mark = self._marks[rows] = Mark()
        if mark.serial is None:
            mark.serial = next(self._serials)
        return mark.serial

    def _mark(self, out: Any, mark: Mark) -> None:
        for tensor in tensors((out,)):
            self._marks[tensor] = replace(mark)


def _latest(sets: Iterable[Origins]) -> Origins:
    return frozenset(sorted(frozenset().union(*sets))[-_MOST:])


def _puts_beside(name: str, given: list[Tensor], out: Any) -> bool:
    """Tell whether a function puts rows beside others; to join halves of a row is no such thing."""
    if name not in _GROWS or not isinstance(out, Tensor) or len(given) < 2:
        return False
    new = given[-1]
    return new.ndim > 1 and new.shape[-1:] == out.shape[-1:] and new.shape != out.shape


def tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    """Find the tensors among values, and in lists and tuples among them."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from (inner for inner in value if isinstance(inner, Tensor))


def _projected(name: str, given: list[Tensor]) -> Tensor | None:
    """Find the rows that a function projects, if it does: multiplies them by learned weights.

    A projection to one number scores a pair; it is not what the pair comes from.
    """
    if name == "linear" and len(given) >= 2:
        return given[0] if given[1].shape[0] > 1 else None
    if name == "addmm" and len(given) == 3:
        return given[1] if given[2].shape[-1] > 1 else None
    if name in _PRODUCTS and len(given) == 2 and isinstance(given[1], nn.Parameter):
        return given[0] if given[1].shape[-1] > 1 else None
    return None
