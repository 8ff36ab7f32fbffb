"""What an edit does to one attention call: operations on the weights or on the context."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from regard.capture.weights import SCATTERED
from regard.errors import RegardError, wrong_type
from regard.interventions.editable import EditableAttention
from regard.interventions.weight_patterns import (
    Pattern,
    named_pattern,
    select_block,
    select_context,
)

# normalisers whose weights are proportional to exponentials of scores, and what keeps it so
_SOFTMAXES = ("softmax", "exp / sum", SCATTERED)
_KEEPS_RATIOS = ("renormalise", "scatter")

WeightFunction = Callable[[Tensor], Tensor]
"""Maps weights (batch, head, query, key) to others of that shape."""

ContextFunction = Callable[[Tensor], Tensor]
"""Maps contexts (batch, head, query, value) to others of that shape."""


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
            mean = means.to(context)[attention.model_heads(heads)]
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
        self._queries_seen, self._keys_seen = _Range(), _Range()

    def apply(self, attention: EditableAttention, heads: list[int]) -> None:
        """Change some heads of a call."""
        attention.location.check_positions()
        first_key = attention.location.first_key
        rows, seen_queries = _within(self._queries, attention.location.offset, attention.shape[2])
        columns, seen_keys = _within(self._keys, first_key, attention.shape[3])
        self._queries_seen.add(seen_queries)
        self._keys_seen.add(range(seen_keys.stop))
        self._missed_queries -= set(seen_queries)
        self._missed_keys -= {*seen_keys, *range(first_key)}  # a cache may have dropped them
        if not rows or not columns:
            return
        weights = attention.weights(heads)
        keep = torch.ones(weights.shape[2:], dtype=torch.bool, device=weights.device)
        keep[torch.tensor(rows, device=keep.device)[:, None], columns] = False
        blocked = weights * keep
        if self._renormalise:
            blocked = _redistribute(weights, blocked, attention)
        attention.set_weights(heads, blocked)

    def missed(self) -> str | None:
        """Return the positions that no call had."""
        for name, positions, seen in (
            ("query", self._missed_queries, self._queries_seen),
            ("key", self._missed_keys, self._keys_seen),
        ):
            if positions:
                listed = ", ".join(map(str, sorted(positions)))
                return f"no {name} at position {listed} in any call: there were {seen}"
        return None


class WeightReplacement:
    """Replacement of the weights by a pattern, by given ones, or by a function of them."""

    def __init__(self, pattern: Pattern | Tensor | WeightFunction) -> None:
        self._pattern = pattern

    def apply(self, attention: EditableAttention, heads: list[int]) -> None:
        """Change some heads of a call."""
        weights = attention.weights(heads)
        if isinstance(self._pattern, Tensor) or self._pattern in ("previous", "itself"):
            attention.location.check_positions()
        if isinstance(self._pattern, str):
            first = attention.location.offset - attention.location.first_key
            new = named_pattern(self._pattern, weights, first)
        elif isinstance(self._pattern, Tensor):
            new = select_block(self._pattern, attention, heads)
        else:
            new = self._pattern(weights)
        if not isinstance(new, Tensor):
            raise wrong_type("what the function given to set_weights returns", "a tensor", new)
        if new.shape != weights.shape:
            raise RegardError(
                f"set_weights must give {attention.location.name} weights (batch, head, query, "
                f"key) of the shape {tuple(weights.shape)}, but gave {tuple(new.shape)}"
            )
        attention.set_weights(heads, new.to(weights))

    def missed(self) -> str | None:
        """Return None: no positions are selected."""
        return None


class ContextReplacement:
    """Replacement of the contexts of heads, by given ones or by a function of them."""

    def __init__(self, context: Tensor | ContextFunction) -> None:
        self._context = context

    def apply(self, attention: EditableAttention, heads: list[int]) -> None:
        """Change some heads of a call."""
        known = attention.head_context(heads)
        if isinstance(self._context, Tensor):
            attention.location.check_positions()
            new: Any = select_context(self._context, attention, heads, known.shape[3])
        else:
            new = self._context(known)
        if not isinstance(new, Tensor):
            raise wrong_type("what the function given to set_context returns", "a tensor", new)
        if new.shape != known.shape:
            raise RegardError(
                f"set_context must give {attention.location.name} contexts (batch, head, query, "
                f"value) of the shape {tuple(known.shape)}, but gave {tuple(new.shape)}"
            )
        attention.set_head_context(heads, new.to(known))

    def missed(self) -> str | None:
        """Return None: no positions are selected."""
        return None


class TemperatureScaling:
    """Division of the scores by a temperature."""

    def __init__(self, temperature: float) -> None:
        self._temperature = temperature

    def apply(self, attention: EditableAttention, heads: list[int]) -> None:
        """Change some heads of a call."""
        location = attention.location
        applied = [x for x in location.applied if x not in _KEEPS_RATIOS]
        if location.normaliser not in _SOFTMAXES or applied:
            made_by = ", then ".join((location.normaliser, *applied))
            raise RegardError(
                f"scale needs weights that are a softmax of scores, but those of {location.name} "
                f"are made by {made_by}; pass a function of the weights to set_weights"
            )
        if attention.has_parallel_edges:
            raise RegardError(
                f"scale needs one score for each query and key, but {location.name} has several "
                "edges between the same nodes; pass a function of the weights to set_weights"
            )
        weights = attention.weights(heads)
        sums = weights.sum(-1, keepdim=True)
        with_sink = torch.cat([weights, _missing(sums, attention)], dim=-1)
        is_masked = with_sink == 0
        scores = with_sink.masked_fill(is_masked, 1.0).log() / self._temperature
        scaled = scores.masked_fill(is_masked, torch.finfo(scores.dtype).min).softmax(-1)
        attention.set_weights(heads, scaled.masked_fill(is_masked, 0.0)[..., :-1])

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
        factor: Tensor | float
        if isinstance(self._factors, Mapping):
            name, chosen = attention.location.name, attention.model_heads(heads)
            if name not in self._factors:
                raise RegardError(f"factors has none of {name}; it has {', '.join(self._factors)}")
            factor = self._factors[name][chosen].view(1, -1, 1, 1).to(context)
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


class _Range:
    """The positions from the first to the last that any call had."""

    def __init__(self) -> None:
        self._first, self._last = float("inf"), -1

    def add(self, positions: range) -> None:
        """Add those of a call."""
        self._first = min(self._first, positions.start)
        self._last = max(self._last, positions.stop - 1)

    def __str__(self) -> str:
        return f"{self._first} to {self._last}"


def _within(positions: Collection[int] | None, first: int, count: int) -> tuple[list[int], range]:
    """Return which of some positions a call has, counted from its first, and all that it has."""
    own = range(first, first + count)
    return [n - first for n in (own if positions is None else positions) if n in own], own


def _redistribute(weights: Tensor, blocked: Tensor, attention: EditableAttention) -> Tensor:
    """Scale the weights that are left of each row, as a mask before the softmax would have.

    A softmax keeps the sum of a row; with a sink (a part of every row that goes to no key), its
    part grows as those of the keys do. Weights that are not normalised (sigmoid) stay as they are,
    and so do rows with negative weights, as of heads that were mixed.
    """
    sums = weights.sum(-1, keepdim=True)
    missing = _missing(sums, attention)
    total, left = sums + missing, blocked.sum(-1, keepdim=True) + missing
    is_scaled = (left > 0) & (total != left) & (weights >= 0).all(-1, keepdim=True)
    if not _is_normalised(sums, attention):
        is_scaled = torch.zeros_like(is_scaled)
    return torch.where(is_scaled, blocked * (total / left.where(is_scaled, 1.0)), blocked)


def _is_normalised(sums: Tensor, attention: EditableAttention) -> bool:
    """Return whether the weights of a row compete; of unknown normalisers, by the sums of rows."""
    normaliser = attention.location.normaliser
    if normaliser in _SOFTMAXES or normaliser.endswith("/ sum"):
        return True
    return bool(((sums - 1).abs() < attention.tolerance).all())


def _missing(sums: Tensor, attention: EditableAttention) -> Tensor:
    """Return what is missing to a sum of 1, if the model did no more than a softmax."""
    is_plain = attention.location.normaliser in _SOFTMAXES and not attention.location.applied
    missing = (1 - sums).where((sums > 0) & (1 - sums > attention.tolerance), 0.0)
    return missing if is_plain else torch.zeros_like(missing)
