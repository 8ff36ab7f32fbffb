"""What an edit does to one attention call: operations on the weights or on the context."""

from collections.abc import Callable, Collection, Mapping
from typing import Literal, Protocol, runtime_checkable

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.interventions.editable import EditableAttention

Pattern = Literal["uniform", "previous", "itself", "first"]
PATTERNS = ("uniform", "previous", "itself", "first")

WeightFunction = Callable[[Tensor], Tensor]
"""Maps weights (batch, head, query, key) to others of that shape."""


@runtime_checkable
class Operation(Protocol):
    """A change of one attention call."""

    def apply(self, attention: EditableAttention, heads: list[int]) -> None:
        """Change some heads of a call."""
        ...

    def missed(self) -> str | None:
        """Return what the operation selects, but no call had; None if there is nothing."""
        ...


class Ablation:
    """Ablation of heads: zeros, the mean over positions, or that of a reference, as context."""

    def __init__(self, mode: str, reference: Mapping[str, Tensor] | None) -> None:
        self._mode, self._reference = mode, reference

    def apply(self, attention: EditableAttention, heads: list[int]) -> None:
        """Change some heads of a call."""
        if self._mode == "zero":
            attention.set_weights(heads, torch.zeros_like(attention.weights(heads)))
        elif self._reference is None:
            self._average_positions(attention, heads)
        else:
            means = self._reference.get(attention.location.name)
            if means is None:
                raise RegardError(
                    f"reference has no mean of {attention.location.name}; it has "
                    + ", ".join(self._reference)
                )
            context = attention.head_context(heads)
            mean = means.to(context)[heads]
            attention.set_head_context(heads, mean[None, :, None].expand_as(context))

    def missed(self) -> str | None:
        """Return None: no positions are selected."""
        return None

    @staticmethod
    def _average_positions(attention: EditableAttention, heads: list[int]) -> None:
        context = attention.head_context(heads)
        if context.shape[2] == 1:
            raise RegardError(
                f"{attention.location.name} was called with one position, as in a generation step, "
                "so that a mean over positions is no ablation; give reference="
            )
        attention.set_head_context(heads, context.mean(2, keepdim=True).expand_as(context))


class Knockout:
    """Removal of edges from queries to keys; their weight is distributed over the other keys."""

    def __init__(
        self, queries: Collection[int] | None, keys: Collection[int] | None, renormalise: bool
    ) -> None:
        self._queries, self._keys, self._renormalise = queries, keys, renormalise
        self._missed_queries, self._missed_keys = set(queries or ()), set(keys or ())

    def apply(self, attention: EditableAttention, heads: list[int]) -> None:
        """Change some heads of a call."""
        _, _, num_queries, num_keys = attention.shape
        positions = range(attention.location.offset, attention.location.offset + num_queries)
        queries = positions if self._queries is None else self._queries
        rows = [n - positions.start for n in queries if n in positions]
        keys = range(num_keys) if self._keys is None else self._keys
        columns = [n for n in keys if n < num_keys]
        self._missed_queries -= set(positions)
        self._missed_keys -= set(columns)
        if not rows or not columns:
            return
        weights = attention.weights(heads)
        keep = torch.ones(num_queries, num_keys, dtype=torch.bool, device=weights.device)
        keep[torch.tensor(rows, device=keep.device)[:, None], columns] = False
        blocked = weights * keep
        attention.set_weights(heads, normalise(blocked) if self._renormalise else blocked)

    def missed(self) -> str | None:
        """Return the positions that no call had."""
        for name, positions in (("query", self._missed_queries), ("key", self._missed_keys)):
            if positions:
                listed = ", ".join(map(str, sorted(positions)))
                return f"no {name} at position {listed}"
        return None


class WeightReplacement:
    """Replacement of the weights by a pattern, by given ones, or by a function of them."""

    def __init__(self, pattern: Pattern | Tensor | WeightFunction) -> None:
        self._pattern = pattern

    def apply(self, attention: EditableAttention, heads: list[int]) -> None:
        """Change some heads of a call."""
        weights = attention.weights(heads)
        if isinstance(self._pattern, str):
            new = named_pattern(self._pattern, weights, attention.location.offset)
        elif isinstance(self._pattern, Tensor):
            new = _select_block(self._pattern, attention, heads)
        else:
            new = self._pattern(weights)
        if new.shape != weights.shape:
            raise RegardError(
                f"set_weights must give {attention.location.name} weights (batch, head, query, "
                f"key) of the shape {tuple(weights.shape)}, but gave {tuple(new.shape)}"
            )
        attention.set_weights(heads, new.to(weights))

    def missed(self) -> str | None:
        """Return None: no positions are selected."""
        return None


class TemperatureScaling:
    """Division of the scores by a temperature."""

    def __init__(self, temperature: float) -> None:
        self._temperature = temperature

    def apply(self, attention: EditableAttention, heads: list[int]) -> None:
        """Change some heads of a call."""
        weights = attention.weights(heads)
        is_masked = weights == 0
        scores = weights.masked_fill(is_masked, 1.0).log() / self._temperature
        unmasked = scores.masked_fill(is_masked, torch.finfo(scores.dtype).min).softmax(-1)
        attention.set_weights(heads, unmasked.masked_fill(is_masked, 0.0))

    def missed(self) -> str | None:
        """Return None: no positions are selected."""
        return None


class Gate:
    """Factors of the contexts of heads."""

    def __init__(self, factors: Mapping[str, Tensor] | float) -> None:
        self._factors = factors

    def apply(self, attention: EditableAttention, heads: list[int]) -> None:
        """Change some heads of a call."""
        context = attention.head_context(heads)
        factor: Tensor | float = 1.0
        if isinstance(self._factors, Mapping):
            factor = self._factors[attention.location.name][heads].view(1, -1, 1, 1).to(context)
        else:
            factor = self._factors
        attention.set_head_context(heads, context * factor)

    def missed(self) -> str | None:
        """Return None: no positions are selected."""
        return None


class Inspection:
    """Inspection of each attention call by a function; nothing is changed."""

    def __init__(self, function: Callable[[EditableAttention], None]) -> None:
        self._function = function

    def apply(self, attention: EditableAttention, heads: list[int]) -> None:
        """Call the function."""
        self._function(attention)

    def missed(self) -> str | None:
        """Return None: no positions are selected."""
        return None


def normalise(weights: Tensor) -> Tensor:
    """Divide each row by its sum; a row without any weight stays zeros."""
    total = weights.sum(-1, keepdim=True)
    return weights / total.masked_fill(total == 0, 1.0)


def named_pattern(pattern: str, weights: Tensor, offset: int) -> Tensor:
    """Return a pattern (batch, head, query, key) of the same shape and visible keys."""
    visible = (weights != 0).to(weights.dtype)
    if pattern == "uniform":
        return normalise(visible)
    queries, keys = weights.shape[2:]
    own = torch.arange(offset, offset + queries, device=weights.device)
    target = {"previous": own - 1, "itself": own, "first": torch.zeros_like(own)}[pattern]
    target = target.clamp(0, keys - 1)
    one_hot = torch.nn.functional.one_hot(target, keys).to(weights.dtype)
    return one_hot.expand_as(weights)


def _select_block(given: Tensor, attention: EditableAttention, heads: list[int]) -> Tensor:
    """Return the rows and columns that a call has of the weights of a whole text."""
    batch, num_heads, queries, keys = attention.shape
    full = given[(None,) * (4 - given.ndim)] if given.ndim < 4 else given
    full = full[:, heads] if full.shape[1] == num_heads else full
    start = attention.location.offset
    if full.shape[2] > queries:
        full = full[:, :, start : start + queries]
    return full[..., :keys].expand(batch, len(heads), *full.shape[2:3], -1)
