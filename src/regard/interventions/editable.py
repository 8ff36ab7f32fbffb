"""One attention call while it is edited: its weights and its context, as tensors with gradients.

An edit replaces slices of the result; the elements of all other heads stay those that the model's
own kernel has computed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard._support.torch_modes import has_float64, no_autocast, upcast
from regard.capture.calls import CapturedCall, EditedWeights
from regard.capture.functions import FunctionCall
from regard.errors import RegardError

MAX_FLOAT32_INTEGER = 2**24  # the last before which float32 has every integer


@dataclass(frozen=True)
class CallLocation:
    """Where an attention call is, and how its weights were made.

    Attributes:
        name: of its module.
        kind: "self", "causal" or "cross".
        offset: position of the first query in its text.
        first_key: position of the first key: a sliding window may have dropped earlier ones.
        first_item: index in the batch of the first item.
        first_head: index of the first head.
        is_part: whether a model multiplies the items or heads of one softmax one by one.
        normaliser: the function that made weights of scores.
        applied: names of what was applied to the weights after it.
        has_shifted_keys: whether keys have other positions than in the step before.
    """

    name: str
    kind: str
    offset: int
    first_key: int = 0
    first_item: int = 0
    first_head: int = 0
    is_part: bool = False
    normaliser: str = "softmax"
    applied: tuple[str, ...] = ()
    has_shifted_keys: bool = False

    def check_positions(self) -> None:
        """Raise if keys have other positions than in the generation step before."""
        if self.has_shifted_keys:
            raise RegardError(
                f"{self.name} inserts the keys of a generation step before those of another text, "
                "so that positions change with each step; edit a pass over the whole text instead"
            )


class EditableAttention:
    """An attention call whose weights and context can be replaced head by head.

    Attributes:
        location: its module, kind and the position of the first query.
        shape: (batch, head, query, key).
        context: the result, in the model's layout.
        edited: by head, the weights (batch, query, key) that were replaced.
    """

    def __init__(
        self,
        location: CallLocation,
        call: CapturedCall,
        context: Tensor,
        elements: Tensor | None,
        edited: EditedWeights,
    ) -> None:
        self.location, self.shape, self.context = location, call.shape, context
        self.edited = dict(edited)
        self._call = call
        self._elements = elements  # (batch, head, query, value): indices into the context

    @property
    def tolerance(self) -> float:
        """How far from 1 the sum of a row may be by rounding."""
        return 1e-4

    @property
    def has_parallel_edges(self) -> bool:
        """Whether a weight is the sum of several, as those of edges between the same nodes."""
        return False

    def model_heads(self, heads: list[int]) -> list[int]:
        """Return the indices of some heads in the module, which may compute them one by one."""
        return [self.location.first_head + head for head in heads]

    def weights(self, heads: list[int]) -> Tensor:
        """Return weights (batch, head, query, key), with the edits so far."""
        missing = [head for head in heads if head not in self.edited]
        known = dict(self.edited)
        if missing:
            known |= zip(missing, self._original_weights(missing).unbind(1), strict=True)
        return torch.stack([known[head] for head in heads], dim=1)

    def set_weights(self, heads: list[int], weights: Tensor) -> None:
        """Replace weights, and the context of these heads by that of the new weights."""
        with no_autocast(self.context):
            self.context = self._with_weights(heads, weights)
        self.edited |= zip(heads, weights.unbind(1), strict=True)

    def head_context(self, heads: list[int]) -> Tensor:
        """Return the context (batch, head, query, value) of some heads."""
        index = self._context_elements()[:, heads]
        return self.context.reshape(-1)[index.reshape(-1)].view(index.shape)

    def set_head_context(self, heads: list[int], context: Tensor) -> None:
        """Replace the context (batch, head, query, value) of some heads."""
        self.context = scatter(self.context, self._context_elements()[:, heads], context)

    def _original_weights(self, heads: list[int]) -> Tensor:
        with no_autocast(self.context):
            weights = self._call.weights(slice(None), heads, slice(None))
        return pad(weights, (0, self.shape[3] - weights.shape[3]))

    def _with_weights(self, heads: list[int], weights: Tensor) -> Tensor:
        values = self._call.values
        assert values is not None, "fused calls have values"
        groups = [head * values.shape[1] // self.shape[1] for head in heads]
        chosen = upcast(values[:, groups])
        context = torch.matmul(weights.to(chosen.dtype), chosen)
        return scatter(self.context, self._context_elements()[:, heads], context)

    def _context_elements(self) -> Tensor:
        if self._elements is None:
            raise RegardError(
                f"{self.location.name} sums its heads in the product with values, so that the "
                "context of one head cannot be replaced; change its weights instead"
            )
        return self._elements


class WrittenOutAttention(EditableAttention):
    """Attention written out in the model: its product with values is computed again."""

    def __init__(
        self,
        location: CallLocation,
        call: CapturedCall,
        context: Tensor,
        edited: EditedWeights,
        product: "Product",
    ) -> None:
        elements = product.context_elements(context)
        super().__init__(location, call, context, elements, edited)
        self._product = product

    @property
    def tolerance(self) -> float:
        """How far from 1 the sum of a row may be by rounding."""
        return 1e-4 if self._product.weights.dtype.itemsize > 2 else 1e-2

    def _original_weights(self, heads: list[int]) -> Tensor:
        index = self._product.elements[:, heads]
        return upcast(self._product.weights.reshape(-1)[index.reshape(-1)].view(index.shape))

    def _with_weights(self, heads: list[int], weights: Tensor) -> Tensor:
        product = self._product
        product.weights = scatter(product.weights, product.elements[:, heads], weights)
        context = product.run(product.weights).to(self.context.dtype)
        if self._elements is None:
            return context
        index = self._elements[:, heads]
        chosen = context.reshape(-1)[index.reshape(-1)].view(index.shape)
        return scatter(self.context, index, chosen)


def number_rows(count: int, device: torch.device) -> Tensor | None:
    """Return the numbers from 1 to `count` as weights; None if the device would round them."""
    if has_float64(device):
        return torch.arange(1, count + 1, dtype=torch.float64, device=device)
    is_exact = count <= MAX_FLOAT32_INTEGER
    return torch.arange(1, count + 1, dtype=torch.float32, device=device) if is_exact else None


class Product:
    """A product of weights with values, which can be run again with other weights.

    Args:
        call: of a torch function, all tensors of which are among its positional arguments.
        position: of the weights among these tensors.
        elements: (batch, head, query, key), or (batch, head, edge), the index of each weight in
            that tensor.
        add_up: sums a product that was computed element by element.
    """

    def __init__(
        self,
        call: FunctionCall,
        position: int,
        elements: Tensor,
        add_up: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        self._function, self._args, self._add_up = call.function, call.args, add_up
        self._kwargs = {name: value for name, value in call.kwargs.items() if name != "out"}
        self._position, self.elements = position, elements
        self.weights: Tensor = self._tensors()[position]

    def run(self, weights: Tensor) -> Tensor:
        """Run the function with other weights."""
        tensors = self._tensors()
        tensors[self._position] = weights.to(tensors[self._position].dtype)
        return self._call(tensors)

    def context_elements(self, context: Tensor) -> Tensor | None:
        """Return the index in the context of each element (batch, head, query, value).

        Found by running the product with values of 1 and weights that number the queries. None if
        the product sums over heads.
        """
        batch, heads, queries, _ = self.elements.shape
        count = batch * heads * queries
        ids = number_rows(count, context.device)
        if ids is None:
            return None
        products, order = self.probe(context, self.elements[..., 0], ids)
        width = context.numel() // count
        if not torch.equal(products, ids.repeat_interleave(width)):
            return None
        return order.view(batch, heads, queries, width)

    def probe(self, context: Tensor, elements: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Run the product with values of 1 and weights that are 0 but for some elements.

        Returns:
            The elements of the result in ascending order, and the index that each had.
        """
        with torch.no_grad(), no_autocast(context):
            tensors = [torch.ones_like(x, dtype=ids.dtype) for x in self._tensors()]
            if len(tensors) == 3:  # baddbmm adds its first tensor
                tensors[0].zero_()
            weights = torch.zeros_like(self.weights, dtype=ids.dtype)
            tensors[self._position] = scatter(weights, elements.reshape(-1), ids)
            products, order = self._call(tensors).reshape(-1).sort(stable=True)
        return products, order

    def _tensors(self) -> list[Tensor]:
        return [x for arg in self._args for x in _tensors_of(arg)]

    def _call(self, tensors: list[Tensor]) -> Tensor:
        rest = iter(tensors)
        args = [_replace_tensors(arg, rest) for arg in self._args]
        out: Tensor = self._function(*args, **self._kwargs)
        return out if self._add_up is None else self._add_up(out)


def scatter(tensor: Tensor, index: Tensor, values: Tensor) -> Tensor:
    """Return a copy with some elements replaced, in the same memory layout."""
    source = values.to(tensor.dtype).expand(index.shape).reshape(-1)
    changed = tensor.reshape(-1).scatter(0, index.reshape(-1), source).view(tensor.shape)
    order = sorted(range(tensor.ndim), key=tensor.stride, reverse=True)
    inverse = [order.index(axis) for axis in range(tensor.ndim)]
    return changed.permute(order).contiguous().permute(inverse)


def _tensors_of(arg: Any) -> list[Tensor]:
    if isinstance(arg, Tensor):
        return [arg]
    return [x for x in arg if isinstance(x, Tensor)] if isinstance(arg, list | tuple) else []


def _replace_tensors(arg: Any, tensors: Any) -> Any:
    if isinstance(arg, Tensor):
        return next(tensors)
    if isinstance(arg, list | tuple):
        return type(arg)(next(tensors) if isinstance(x, Tensor) else x for x in arg)
    return arg
