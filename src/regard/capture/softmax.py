"""Attention written out in the model: softmax results, followed until they multiply values."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from string import ascii_letters
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from regard.capture.calls import MaterializedWeights, to_four_axes
from regard.capture.head_layout import NO_HEADS, HeadLayout, folded_layout
from regard.capture.lineage import LAYOUT_FUNCTIONS, Lineage, tensors_in

_SOFTMAX = {"softmax", "_softmax", "special_softmax"}
_PRODUCTS = {"matmul", "__matmul__", "bmm", "baddbmm", "mm", "mv"}
# functions after which the weights count as unchanged; dropout too: weights are those before it
_UNCHANGED = {"contiguous", "clone", "detach", "to", "type", "type_as", "float", "half"}
_UNCHANGED |= {"bfloat16", "double", "dropout", "dropout_", "alpha_dropout", "native_dropout"}
_MASKING = {"masked_fill", "masked_fill_", "where", "mul", "__mul__", "mul_", "multiply"}
_MASKING |= {"__rmul__"}
_ELEMENTWISE = {"nan_to_num", "div", "__truediv__", *_MASKING}
# tracked tensors may have other strides than the model's, and not be viewable
_VIEWS: dict[str, Callable[..., Any]] = {"view": Tensor.reshape, "view_as": Tensor.reshape_as}

MASKED_BELOW = -9e3  # scores below are masked: some models add no more than -10000

folded_heads: ContextVar[int] = ContextVar("folded_heads", default=1)
"""Number of heads folded into the batch axis, inside nn.MultiheadAttention."""

appended_keys: ContextVar[int] = ContextVar("appended_keys", default=0)
"""Number of keys that nn.MultiheadAttention appends: `bias_k` and `add_zero_attn`."""


@dataclass(frozen=True, slots=True)
class TrackedWeights:
    """The result of a softmax on its way to the values, before dropout."""

    weights: Tensor  # in the layout that the values will meet
    softmax_index: Tensor  # in the same layout: the index along the axis of the softmax
    original_shape: torch.Size  # of the softmax result, or of its latest form with four axes
    same_rows: bool | None  # whether queries and keys come from the same rows; None if unknown
    from_cache: bool = False  # whether keys came from a KV cache
    has_mask: bool = False
    head_layout: HeadLayout = NO_HEADS
    values: Tensor | None = None  # factor of an elementwise product that is yet to be summed

    def rearranged(self, rearrange: Callable[[Tensor], Tensor]) -> "TrackedWeights":
        """Apply a permutation of axes."""
        return self.with_layout("permute", rearrange(self.weights), rearrange(self.softmax_index))

    def with_layout(self, name: str, weights: Tensor, softmax_index: Tensor) -> "TrackedWeights":
        """Replace the tensors by those that a layout function of that name has made of them."""
        layout = self.head_layout.through(name, self.weights, weights)
        return replace(self, weights=weights, softmax_index=softmax_index, head_layout=layout)


@dataclass(frozen=True, slots=True)
class MatchedAttention:
    """A softmax whose result has multiplied values."""

    call: MaterializedWeights
    same_rows: bool | None
    from_cache: bool
    operand: Tensor  # of the product, in the model's layout and autograd graph
    to_weights: Callable[[Tensor], Tensor]  # brings the operand's gradient to that of the weights


class SoftmaxTracker:
    """Follows softmax results through layouts, masks and dropout to a product with values."""

    def __init__(self, lineage: Lineage) -> None:
        self._tracked: Any = WeakTensorKeyDictionary()
        self._lineage = lineage

    def before_dropout(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Copy tracked weights that dropout is about to overwrite in place."""
        in_place = name == "dropout_" or kwargs.get("inplace") or (len(args) > 3 and args[3])
        if in_place and args and args[0] in self._tracked:
            tracked = self._tracked[args[0]]
            self._tracked[args[0]] = replace(tracked, weights=tracked.weights.clone())

    def update(
        self,
        function: Callable[..., Any],
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        out: Any,
    ) -> MatchedAttention | None:
        """Track a function's result; return the attention that it completes, if it does."""
        if name in _SOFTMAX and isinstance(out, Tensor):
            self._start(args, kwargs, out)
            return None
        position, tracked = self._find(args)
        if tracked is None:
            return None
        if name in _PRODUCTS or name == "einsum" or (name == "sum" and tracked.values is not None):
            return self._match(name, args, kwargs, position, tracked)
        self._propagate(function, name, args, kwargs, out, position, tracked)
        return None

    def locate(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[int, Tensor] | None:
        """Find the weights among the operands of a product with values.

        Returns:
            The operand's position among the tensors of `args`, and for each weight (batch, head,
            query, key) the index of its element in that operand, as if that were contiguous.
        """
        position, tracked = self._find(args)
        if tracked is None or tracked.values is not None:
            return None
        shape = tracked.weights.shape
        elements = torch.arange(shape.numel(), device=tracked.weights.device).view(shape)
        oriented = _orient(name, args, kwargs, position, replace(tracked, weights=elements))
        call = None if oriented is None else _match(oriented)
        return None if call is None else (position, call.elements)

    def _start(self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Tensor) -> None:
        scores = next(tensors_in((*args, *kwargs.values())))
        lineage, heads = self._lineage, folded_heads.get()
        axis = kwargs.get("dim", args[1] if len(args) > 1 else -1)
        index = torch.arange(out.shape[axis] if out.ndim else 1, device=out.device)
        along_axis = [-1 if n == axis % out.ndim else 1 for n in range(out.ndim)]
        self._tracked[out] = TrackedWeights(
            out.detach(),
            index.view(along_axis).expand(out.shape),
            out.shape,
            lineage.same_rows_in_scores(scores),
            lineage.from_cache(scores),
            has_mask=bool((scores.detach() < MASKED_BELOW).any()),
            head_layout=folded_layout(heads) if heads > 1 else lineage.head_layout(scores),
        )

    def _find(self, args: tuple[Any, ...]) -> tuple[int, TrackedWeights | None]:
        """Return the first tracked tensor among the arguments, and its position."""
        for position, tensor in enumerate(tensors_in(args)):
            if tensor in self._tracked:
                return position, self._tracked[tensor]
        return 0, None

    def _match(
        self,
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        position: int,
        tracked: TrackedWeights,
    ) -> MatchedAttention | None:
        """Return the attention that a product completes; None if it is no product with values."""

        def match(weights: Tensor) -> MaterializedWeights | None:
            known = replace(tracked, weights=weights)
            oriented = _orient(name, args, kwargs, position, known)
            return None if oriented is None else _match(oriented)

        def to_weights(gradient: Tensor) -> Tensor:
            if tracked.values is not None:  # of weights * values
                gradient = (gradient * tracked.values).sum_to_size(tracked.weights.shape)
            call = match(gradient)
            assert call is not None, "it was matched before"
            return call.weights(slice(None), list(range(call.shape[1])), slice(None))

        call = match(tracked.weights)
        if call is None:
            return None
        operand = list(tensors_in(args))[position]
        return MatchedAttention(call, tracked.same_rows, tracked.from_cache, operand, to_weights)

    def _propagate(
        self,
        function: Callable[..., Any],
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        out: Any,
        position: int,
        tracked: TrackedWeights,
    ) -> None:
        """Track what a function made of tracked weights."""
        if tracked.values is not None:
            return
        if position != 0 and name in (*_UNCHANGED, *LAYOUT_FUNCTIONS):
            return  # the weights only lent their dtype or shape to another tensor
        if name in _UNCHANGED and isinstance(out, Tensor):
            self._tracked[out] = tracked
        elif name in LAYOUT_FUNCTIONS:
            rearrange = _VIEWS.get(name, function)
            results = [
                rearrange(x, *args[1:], **kwargs) for x in (tracked.weights, tracked.softmax_index)
            ]
            for tensor, *both in zip(*(tensors_in((x,)) for x in (out, *results)), strict=True):
                shape = tensor.shape if tensor.ndim == 4 else tracked.original_shape
                moved = tracked.with_layout(name, *both)
                self._tracked[tensor] = replace(moved, original_shape=shape)
        elif name in _ELEMENTWISE and isinstance(out, Tensor):
            self._propagate_elementwise(name, args, out, position, tracked)

    def _propagate_elementwise(
        self, name: str, args: tuple[Any, ...], out: Tensor, position: int, tracked: TrackedWeights
    ) -> None:
        if out.shape == tracked.weights.shape:
            has_mask = tracked.has_mask or name in _MASKING
            self._tracked[out] = replace(tracked, weights=out.detach(), has_mask=has_mask)
        elif "mul" in name:  # weights * values, to be summed over the keys
            values = next(x for n, x in enumerate(tensors_in(args)) if n != position)
            expanded = tracked.rearranged(lambda x: x[(None,) * (out.ndim - x.ndim)])
            self._tracked[out] = replace(expanded, values=values.detach())


def _orient(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], position: int, tracked: TrackedWeights
) -> TrackedWeights | None:
    """Move queries and keys to the last axes of the weights, and orient the values alike.

    Returns None if the function is no product of attention weights with values.
    """
    if name == "sum":
        return _orient_from_sum(args, kwargs, tracked)
    operands = list(tensors_in(args))
    if name == "einsum":
        return (
            _orient_from_einsum(args[0], operands, position, tracked)
            if len(operands) == 2
            else None
        )
    if name == "baddbmm":
        operands, position = operands[1:], position - 1
    if position not in (0, 1) or len(operands) != 2:
        return None
    if isinstance(operands[1 - position], nn.Parameter):
        return None  # a mixture of learned vectors attends to no position
    values = operands[1 - position].detach()
    if position == 1:
        tracked, values = tracked.rearranged(_transpose), _transpose(values)
    if tracked.weights.ndim == 1:
        tracked = tracked.rearranged(lambda x: x[None])
    return replace(tracked, values=values)


def _transpose(rows: Tensor) -> Tensor:
    """Swap the last two axes; a vector multiplies from either side."""
    return rows.transpose(-2, -1) if rows.ndim > 1 else rows


def _orient_from_sum(
    args: tuple[Any, ...], kwargs: dict[str, Any], tracked: TrackedWeights
) -> TrackedWeights | None:
    """Read (weights * values).sum(keys), where weights have size 1 along the width."""
    axis = kwargs.get("dim", args[1] if len(args) > 1 else None)
    axis = axis[0] if isinstance(axis, list | tuple) and len(axis) == 1 else axis
    if not isinstance(axis, int) or tracked.weights.shape[-1] != 1 or tracked.values is None:
        return None
    ndim = tracked.weights.ndim
    axis %= ndim
    single_query = axis == ndim - 2 and ndim == 3
    values = tracked.values.movedim(axis - ndim, -2)
    values = values.squeeze(-3) if values.ndim == ndim and not single_query else values
    oriented = tracked.rearranged(lambda x: x.movedim(axis, -1).squeeze(-2))
    oriented = oriented.rearranged(lambda x: x[:, None]) if single_query else oriented
    return replace(oriented, values=values)


def _orient_from_einsum(
    equation: Any, operands: list[Tensor], position: int, tracked: TrackedWeights
) -> TrackedWeights | None:
    """Read the axes from the letters: keys are summed over, queries occur only in the weights."""
    if not isinstance(equation, str):
        return None
    terms, result, ellipsis = _expand_equation(equation, [x.ndim for x in operands])
    own, other = terms[position], terms[1 - position]
    keys = [axis for axis in own if axis in other and axis not in result]
    queries = [axis for axis in own if axis in result and axis not in other + ellipsis]
    leading = [axis for axis in own if axis in result and axis in other + ellipsis]
    if len(keys) != 1 or len(queries) > 1 or len(leading) + len(queries) + 1 != len(own):
        return None
    order = [own.index(axis) for axis in (*leading, *queries, *keys)]
    oriented = tracked.rearranged(lambda x: x.permute(order))
    return oriented if queries else oriented.rearranged(lambda x: x.unsqueeze(-2))


def _expand_equation(equation: str, ndims: list[int]) -> tuple[list[str], str, str]:
    """Return an einsum's terms and result without ellipses, and the letters that replace those."""
    joined, arrow, result = equation.replace(" ", "").partition("->")
    if not arrow:  # an implicit result has the letters that occur once
        once = (axis for axis in joined if axis.isalpha() and joined.count(axis) == 1)
        result = "..." + "".join(once)
    terms = joined.split(",")
    hidden = [n - len(term.replace(".", "")) for term, n in zip(terms, ndims, strict=True)]
    ellipsis = "".join(axis for axis in ascii_letters if axis not in joined)[: max(hidden)]
    terms = [
        term.replace("...", ellipsis[len(ellipsis) - n :])
        for term, n in zip(terms, hidden, strict=True)
    ]
    return terms, result.replace("...", ellipsis), ellipsis


def _match(oriented: TrackedWeights) -> MaterializedWeights | None:
    """Bring oriented weights to four axes; None if another axis than the softmax's is summed."""
    index = oriented.softmax_index[(0,) * (oriented.softmax_index.ndim - 1)]
    if len(index) > 1 and index[0] == index[1]:
        return None
    weights, shape = oriented.weights, oriented.original_shape
    folded = torch.Size([shape[:-2].numel(), *shape[-2:]])
    if len(shape) == 4 and weights.shape == folded:
        weights = weights.unflatten(0, shape[:2])
    weights = to_four_axes(oriented.head_layout.split(weights))
    values = None if oriented.values is None else _match_values(oriented.values, weights, oriented)
    return MaterializedWeights(
        weights, values, has_mask=oriented.has_mask, extra_keys=appended_keys.get()
    )


def _match_values(values: Tensor, weights: Tensor, oriented: TrackedWeights) -> Tensor | None:
    """Bring values to the axes of the weights; None if they do not fit."""
    if values.ndim < 2:
        return None
    if values.ndim == oriented.weights.ndim and len(values) == len(oriented.weights):
        values = oriented.head_layout.split(values)
    if values.ndim == 3 and values.shape[0] == weights.shape[0] * weights.shape[1]:
        values = folded_layout(weights.shape[1]).split(values)
    values = to_four_axes(values)
    fits = values.shape[2] == weights.shape[3] and weights.shape[1] % values.shape[1] == 0
    return values if fits and len(values) in (1, len(weights)) else None
