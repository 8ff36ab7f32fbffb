"""Attention written by hand: what softmax gives, followed until it gathers values."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from string import ascii_letters
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from regard.capture.calls.base import Whole, four_axes
from regard.capture.head_layout import NO_HEADS, Heads, folded
from regard.capture.lineage import LAYOUT, Lineage, tensors

_SAME_PLACE = {"contiguous", "clone", "detach", "to", "type", "type_as", "float", "half"}
_SAME_PLACE |= {"bfloat16", "double", "dropout", "dropout_", "alpha_dropout", "native_dropout"}
_HIDES = {"masked_fill", "masked_fill_", "where", "mul", "__mul__", "mul_", "multiply", "__rmul__"}
_CHANGES = {"nan_to_num", "div", "__truediv__", *_HIDES}
_SOFTMAXES = {"softmax", "_softmax", "special_softmax"}
HIDDEN = -9e3  # scores below are hidden: some masks subtract no more than 10000
_PRODUCTS = {"matmul", "__matmul__", "bmm", "baddbmm", "mm", "mv"}
# what is held may lie otherwise in memory than the model's own, and not be viewable
_VIEWS: dict[str, Callable[..., Any]] = {"view": Tensor.reshape, "view_as": Tensor.reshape_as}


heads_inside: ContextVar[int] = ContextVar("heads_inside", default=1)
"""Heads that share one axis with the batch, as inside nn.MultiheadAttention."""

keys_added: ContextVar[int] = ContextVar("keys_added", default=0)
"""Keys that nn.MultiheadAttention puts behind those of the text: a learned one, one of zeros."""


@dataclass(frozen=True, slots=True)
class Held:
    """Weights on their way from softmax to the values, before dropout."""

    weights: Tensor  # in the layout that the values will meet
    places: Tensor  # in the same layout, numbers that grow along the axis of the softmax only
    before: torch.Size  # the shape that softmax gave, or the last one of four axes
    same: bool | None  # whether rows look at themselves
    grown: bool = False  # whether keys came from a cache
    masked: bool = False  # whether something was hidden
    heads: Heads = NO_HEADS
    values: Tensor | None = None  # that it was multiplied with, to be summed up next

    def moved(self, move: Callable[[Tensor], Tensor]) -> "Held":
        """Lay weights and places out anew."""
        return self.laid_out("permute", move(self.weights), move(self.places))

    def laid_out(self, name: str, weights: Tensor, places: Tensor) -> "Held":
        """Go on with weights and places that a function of that name has laid out anew."""
        heads = self.heads.after(name, self.weights, weights)
        return replace(self, weights=weights, places=places, heads=heads)


@dataclass(frozen=True, slots=True)
class Gathered:
    """A look that was completed."""

    asked: Whole
    same: bool | None
    grown: bool


class Written:
    """Follows softmax results through layouts, masks and dropout."""

    def __init__(self, lineage: Lineage) -> None:
        self._held: Any = WeakTensorKeyDictionary()
        self._lineage = lineage

    def save(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Copy weights that are about to be dropped in place."""
        in_place = name == "dropout_" or kwargs.get("inplace") or (len(args) > 3 and args[3])
        if in_place and args and args[0] in self._held:
            held = self._held[args[0]]
            self._held[args[0]] = replace(held, weights=held.weights.clone())

    def follow(
        self,
        function: Callable[..., Any],
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        out: Any,
    ) -> Gathered | None:
        """Hold what softmax gives, and return a look when it meets values."""
        if name in _SOFTMAXES and isinstance(out, Tensor):
            self._hold_softmax(args, kwargs, out)
            return None
        at, held = self._found(args)
        if held is None:
            return None
        if name in _PRODUCTS or name == "einsum" or (name == "sum" and held.values is not None):
            turned = _turned(name, args, kwargs, at, held)
            return None if turned is None else _gathered(turned)
        self._pass_on(function, name, args, kwargs, out, at, held)
        return None

    def _hold_softmax(self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Tensor) -> None:
        scores = next(tensors((*args, *kwargs.values())))
        lineage, inside = self._lineage, heads_inside.get()
        axis = kwargs.get("dim", args[1] if len(args) > 1 else -1)
        places = torch.arange(out.shape[axis] if out.ndim else 1, device=out.device)
        along = [-1 if n == axis % out.ndim else 1 for n in range(out.ndim)]
        self._held[out] = Held(
            out.detach(),
            places.view(along).expand(out.shape),
            out.shape,
            lineage.same_in_scores(scores),
            lineage.grown(scores),
            masked=bool((scores.detach() < HIDDEN).any()),
            heads=folded(inside) if inside > 1 else lineage.heads(scores),
        )

    def _found(self, args: tuple[Any, ...]) -> tuple[int, Held | None]:
        for at, tensor in enumerate(tensors(args)):
            if tensor in self._held:
                return at, self._held[tensor]
        return 0, None

    def _pass_on(
        self,
        function: Callable[..., Any],
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        out: Any,
        at: int,
        held: Held,
    ) -> None:
        if held.values is not None:
            return
        if at != 0 and name in (*_SAME_PLACE, *LAYOUT):
            return  # it only gave its type or shape to another
        if name in _SAME_PLACE and isinstance(out, Tensor):
            self._held[out] = held
        elif name in LAYOUT:
            move = _VIEWS.get(name, function)
            moved = [move(x, *args[1:], **kwargs) for x in (held.weights, held.places)]
            for tensor, *both in zip(*(tensors((x,)) for x in (out, *moved)), strict=True):
                before = tensor.shape if tensor.ndim == 4 else held.before
                self._held[tensor] = replace(held.laid_out(name, *both), before=before)
        elif name in _CHANGES and isinstance(out, Tensor):
            if out.shape == held.weights.shape:
                masked = held.masked or name in _HIDES
                self._held[out] = replace(held, weights=out.detach(), masked=masked)
            elif "mul" in name:
                other = next(x for n, x in enumerate(tensors(args)) if n != at)
                met = held.moved(lambda x: x[(None,) * (out.ndim - x.ndim)])
                self._held[out] = replace(met, values=other.detach())


def _turned(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], at: int, held: Held
) -> Held | None:
    """Turn weights so that queries and keys come last, and values likewise."""
    if name == "sum":
        return _from_sum(args, kwargs, held)
    given = list(tensors(args))
    if name == "einsum":
        return _from_einsum(args[0], given, at, held) if len(given) == 2 else None
    if name == "baddbmm":
        given, at = given[1:], at - 1
    if at not in (0, 1) or len(given) != 2 or isinstance(given[1 - at], nn.Parameter):
        return None  # a mixture of learned vectors looks at no position
    other = given[1 - at].detach()
    if at == 1:
        held, other = held.moved(_across), _across(other)
    single = held.weights.ndim == 1
    return replace(held.moved(lambda x: x[None]) if single else held, values=other)


def _across(rows: Tensor) -> Tensor:
    """Turn rows to columns; a single row is its own column to a product."""
    return rows.transpose(-2, -1) if rows.ndim > 1 else rows


def _from_sum(args: tuple[Any, ...], kwargs: dict[str, Any], held: Held) -> Held | None:
    """Read (weights * values).sum(keys), where weights have one number for all of a value."""
    axis = kwargs.get("dim", args[1] if len(args) > 1 else None)
    axis = axis[0] if isinstance(axis, list | tuple) and len(axis) == 1 else axis
    if not isinstance(axis, int) or held.weights.shape[-1] != 1 or held.values is None:
        return None
    axis %= held.weights.ndim
    single = axis == held.weights.ndim - 2 and held.weights.ndim == 3
    values = held.values.movedim(axis - held.weights.ndim, -2)
    values = values.squeeze(-3) if values.ndim == held.weights.ndim and not single else values
    turned = held.moved(lambda x: x.movedim(axis, -1).squeeze(-2))
    turned = turned.moved(lambda x: x[:, None]) if single else turned
    return replace(turned, values=values)


def _from_einsum(equation: Any, given: list[Tensor], at: int, held: Held) -> Held | None:
    """Read queries and keys from the letters: keys are summed over, queries only in weights."""
    if not isinstance(equation, str):
        return None
    sides, result, dots = _spelled(equation, [x.ndim for x in given])
    mine, theirs = sides[at], sides[1 - at]
    keys = [axis for axis in mine if axis in theirs and axis not in result]
    queries = [axis for axis in mine if axis in result and axis not in theirs + dots]
    rest = [axis for axis in mine if axis in result and axis in theirs + dots]
    if len(keys) != 1 or len(queries) > 1 or len(rest) + len(queries) + 1 != len(mine):
        return None
    order = [mine.index(axis) for axis in (*rest, *queries, *keys)]
    turned = held.moved(lambda x: x.permute(order))
    return turned if queries else turned.moved(lambda x: x.unsqueeze(-2))


def _spelled(equation: str, axes: list[int]) -> tuple[list[str], str, str]:
    """Write out an equation's sides, its result if it says none, and the letters for its dots."""
    joined, arrow, result = equation.replace(" ", "").partition("->")
    if not arrow:  # einsum sums over every letter that stands twice
        once = (axis for axis in joined if axis.isalpha() and joined.count(axis) == 1)
        result = "..." + "".join(once)
    sides = joined.split(",")
    hidden = [n - len(side.replace(".", "")) for side, n in zip(sides, axes, strict=True)]
    dots = "".join(axis for axis in ascii_letters if axis not in joined)[: max(hidden)]
    sides = [
        side.replace("...", dots[len(dots) - n :]) for side, n in zip(sides, hidden, strict=True)
    ]
    return sides, result.replace("...", dots), dots


def _gathered(turned: Held) -> Gathered | None:
    first = turned.places[(0,) * (turned.places.ndim - 1)]
    if len(first) > 1 and first[0] == first[1]:
        return None  # what is summed over is not what the softmax shared out
    weights, before = turned.weights, turned.before
    joined = torch.Size([before[:-2].numel(), *before[-2:]])
    if len(before) == 4 and weights.shape == joined:
        weights = weights.unflatten(0, before[:2])
    weights = four_axes(turned.heads.apart(weights))
    values = None if turned.values is None else _values(turned.values, weights, turned)
    whole = Whole(weights, values, masked=turned.masked, added=keys_added.get())
    return Gathered(whole, turned.same, turned.grown)


def _values(values: Tensor, weights: Tensor, turned: Held) -> Tensor | None:
    if values.ndim < 2:
        return None
    if values.ndim == turned.weights.ndim and len(values) == len(turned.weights):
        values = turned.heads.apart(values)
    if values.ndim == 3 and values.shape[0] == weights.shape[0] * weights.shape[1]:
        values = folded(weights.shape[1]).apart(values)
    values = four_axes(values)
    fits = values.shape[2] == weights.shape[3] and weights.shape[1] % values.shape[1] == 0
    return values if fits and len(values) in (1, len(weights)) else None
