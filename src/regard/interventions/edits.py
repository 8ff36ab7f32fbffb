"""The object that `regard.edit` yields: modules and heads are selected, then changed."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from numbers import Real
from operator import index
from typing import Any, SupportsIndex

import numpy as np
from torch import Tensor

from regard.capture.call_site import ModuleNames, matches_name
from regard.errors import RegardError, unknown_name, wrong_type
from regard.interventions.editable import EditableAttention
from regard.interventions.operations import (
    Ablation,
    ContextFunction,
    ContextReplacement,
    Gate,
    Knockout,
    Operation,
    TemperatureScaling,
    WeightFunction,
    WeightReplacement,
)
from regard.interventions.weight_patterns import PATTERNS, Pattern

Indices = SupportsIndex | Iterable[SupportsIndex] | Tensor | np.ndarray
"""An index or several: of heads, or of positions."""


class Edit:
    """One operation on the heads of the modules that a pattern matches."""

    def __init__(self, pattern: str, heads: list[int] | None, operation: Operation) -> None:
        self.pattern, self._heads, self._operation = pattern, heads, operation
        self._was_applied = False
        self._missed_heads = set(heads or ())

    def matches(self, name: str) -> bool:
        """Return whether the pattern matches a module, or a module that it is part of."""
        return matches(self.pattern, name)

    def _selects_part(self, outer: str, model: ModuleNames) -> bool:
        """Return whether the pattern matches a module or one inside it."""
        inside = [name for name in model.all() if matches(outer, name)]
        return any(self.matches(name) for name in (outer, *inside))

    def apply(self, attention: EditableAttention) -> None:
        """Change a call of a module that the pattern matches."""
        heads = list(range(attention.shape[1]))
        if self._heads is not None:
            index_of = {n: head for head, n in enumerate(attention.model_heads(heads))}
            heads = [index_of[n] for n in self._heads if n in index_of]
        self._was_applied = True
        self._missed_heads -= set(attention.model_heads(heads))
        if heads:
            self._operation.apply(attention, heads)

    def check(
        self, num_heads: Mapping[str, int], model: ModuleNames, others: Mapping[str, str]
    ) -> None:
        """Raise an error if no call matched.

        Args:
            num_heads: of the attention modules that ran.
            model: the names of all modules.
            others: by module, what was seen of softmaxes that did not become attention.
        """
        if not self._was_applied:
            scripted = [name for name in model.scripted() if self._selects_part(name, model)]
            if scripted:
                raise _is_scripted(self.pattern, scripted)
            seen = [others[name] for name in others if self.matches(name)]
            if seen:
                raise RegardError(f"the edit of {self.pattern!r} changed nothing: {seen[0]}")
            raise _no_match(self.pattern, num_heads)
        names = [name for name in num_heads if self.matches(name)]
        there = f"{names[0]} has {num_heads[names[0]]} heads, counted from 0"
        if self._missed_heads:
            listed = ", ".join(map(str, sorted(self._missed_heads)))
            raise RegardError(f"the edit of {self.pattern!r} matched no head {listed}: {there}")
        missed = self._operation.missed()
        if missed is not None:
            raise RegardError(f"the edit of {self.pattern!r} matched {missed}")


class Edits:
    """Edits of a model's attention: `edits["layers.3"]` selects modules to change.

    `regard.edit` creates it. A name selects that module and all inside it; patterns such as
    "decoder.layers.*.cross" select several. Edits apply in the order in which they were made.
    """

    def __init__(self, names: ModuleNames) -> None:
        self._names = names
        self._edits: list[Edit] = []
        self.num_heads: dict[str, int] = {}  # of the attention modules that ran

    def __getitem__(self, pattern: str) -> "Selection":
        """Select the modules that a name or pattern matches.

        Raises:
            RegardError: if the model has no such module.
            TypeError: if the pattern is no string.
        """
        if not isinstance(pattern, str):
            raise wrong_type("the name of a module", "a string", pattern)
        if not self._names.any_match(pattern):
            if (other := self._names.other_name(pattern)) is not None:
                raise RegardError(
                    f"{pattern!r} is another name of {other!r}: an edit of that module changes all "
                    "of its calls"
                )
            raise unknown_name("module", pattern, self._names.all())
        return Selection(self, pattern)

    def add(self, edit: Edit) -> None:
        """Add an edit, which applies after those before it."""
        self._edits.append(edit)

    def matching(self, name: str) -> list[Edit]:
        """Return the edits of a module."""
        return [edit for edit in self._edits if edit.matches(name)]

    def check(self, others: Mapping[str, str]) -> None:
        """Raise an error for an edit that matched nothing.

        Args:
            others: by module, what was seen of softmaxes that did not become attention.
        """
        for edit in self._edits:
            edit.check(self.num_heads, self._names, others)


class Selection:
    """Modules, and perhaps some of their heads, that an edit changes.

    Example:
        >>> import torch, regard
        >>> model = regard.MultiHeadAttention(12, heads=3)
        >>> with regard.edit(model) as edits, regard.watch(model) as capture:
        ...     edits["*"].heads(0).set_weights("uniform")
        ...     output = model(torch.randn(1, 4, 12))
        >>> capture[0].weights[0, 0, 0].tolist()
        [0.25, 0.25, 0.25, 0.25]
    """

    def __init__(self, edits: Edits, pattern: str, heads: list[int] | None = None) -> None:
        self._edits, self._pattern, self._heads = edits, pattern, heads

    def heads(self, heads: Indices) -> "Selection":
        """Select some heads; all are selected by default.

        Args:
            heads: an index or several, counted from 0.

        Raises:
            RegardError: if there is no index, or one is negative.
            TypeError: if one is no integer.
        """
        chosen = as_indices("heads", heads)
        return Selection(self._edits, self._pattern, list(dict.fromkeys(chosen)))

    def ablate(self, mode: str = "zero", *, reference: Mapping[str, Tensor] | None = None) -> None:
        """Remove what the heads contribute.

        Args:
            mode: "zero" sets their context to zeros, "mean" to its mean over the positions of the
                call, padding included, or to that of a reference.
            reference: means of a reference batch by module, from `reference_means`.

        Raises:
            RegardError: if `mode` is unknown, or `reference` is given with "zero".
        """
        if mode not in ("zero", "mean"):
            raise RegardError(f"mode must be 'zero' or 'mean', but it is {mode!r}")
        if mode == "zero" and reference is not None:
            raise RegardError("reference is used by mode='mean' only, but mode is 'zero'")
        self._add(Ablation(mode, reference))

    def block(
        self,
        queries: Indices | None = None,
        keys: Indices | None = None,
        *,
        renormalise: bool = True,
    ) -> None:
        """Remove the edges from some queries to some keys (attention knockout).

        Args:
            queries: their positions in the text, also during generation; all by default.
            keys: their positions; all by default.
            renormalise: scale the weights that are left of a row to the sum that it had, as a mask
                before the softmax would; False leaves them. A row without any key left becomes
                zeros. Weights that are not normalised, and rows with negative ones, are not scaled.

        Raises:
            RegardError: if a position is negative, or neither queries nor keys are given.
            TypeError: if a position is no integer.
        """
        if queries is None and keys is None:
            raise RegardError("block needs queries= or keys=; ablate() removes whole heads")
        rows = None if queries is None else as_indices("queries", queries)
        columns = None if keys is None else as_indices("keys", keys)
        self._add(Knockout(rows, columns, renormalise))

    def set_weights(self, pattern: Pattern | Tensor | WeightFunction) -> None:
        """Replace the weights.

        Args:
            pattern: "uniform" (over the keys that had any weight), "previous", "itself" or "first"
                (a single key each); weights that broadcast to (batch, head, query, key), or those
                of windows with five axes, such as those of another run (activation patching), of
                which a generation step takes its rows; or a function of the weights.

        Raises:
            RegardError: if no pattern has this name.
            TypeError: if it is neither a name, a tensor nor a function.
        """
        if isinstance(pattern, str) and pattern not in PATTERNS:
            raise unknown_name("pattern", pattern, PATTERNS)
        if not isinstance(pattern, str | Tensor) and not callable(pattern):
            expected = "a name, a tensor (batch, head, query, key) or a function of one"
            raise wrong_type("pattern", expected, pattern)
        self._add(WeightReplacement(pattern))

    def set_context(self, context: Tensor | ContextFunction) -> None:
        """Replace the context of heads: what they read, before the output projection.

        Args:
            context: what broadcasts to (batch, head, query, value), such as the contexts of another
                run by `head_contexts` (activation patching), of which a generation step takes its
                rows; or a function of the context.

        Raises:
            TypeError: if it is neither a tensor nor a function.
        """
        if not isinstance(context, Tensor) and not callable(context):
            expected = "a tensor (batch, head, query, value) or a function of one"
            raise wrong_type("context", expected, context)
        self._add(ContextReplacement(context))

    def scale(self, *, temperature: float) -> None:
        """Divide the scores by a temperature: above 1 flattens the weights, below 1 sharpens them.

        Weights that are no softmax of scores, or that were mixed after it, are refused when the
        model runs.

        Raises:
            RegardError: if the temperature is not positive.
        """
        if not temperature > 0:
            raise RegardError(f"temperature must be more than 0, but it is {temperature}")
        self._add(TemperatureScaling(temperature))

    def gate(self, factors: Mapping[str, Tensor] | float) -> None:
        """Multiply the context of heads by a factor.

        Args:
            factors: one number for all, or by module a factor for each head, which may require
                gradients: they measure the importance of heads (Michel et al. 2019).

        Raises:
            TypeError: if it is neither a number nor a mapping.
        """
        if not isinstance(factors, Mapping | Real):
            raise wrong_type(
                "factors", "a number, or a mapping of module names to tensors", factors
            )
        self._add(Gate(factors))

    def apply(self, operation: Operation) -> None:
        """Apply an operation of your own."""
        self._add(operation)

    def _add(self, operation: Operation) -> None:
        self._edits.add(Edit(self._pattern, self._heads, operation))


def as_indices(name: str, given: Indices) -> list[int]:
    """Return indices as a list, from one or several of them, an array or a tensor.

    Raises:
        RegardError: if there is none, or one is negative.
        TypeError: if one is no integer.
    """
    values: Any = given.tolist() if isinstance(given, Tensor | np.ndarray) else given
    chosen = list(values) if isinstance(values, Iterable) else [values]
    for value in chosen:
        if isinstance(value, bool | np.bool_) or not isinstance(value, SupportsIndex):
            raise TypeError(f"{name} must be integers, but one is a {type(value).__name__}")
    chosen = [index(value) for value in chosen]
    if not chosen or min(chosen) < 0:
        raise RegardError(f"{name} must be indices from 0, at least one, but they are {chosen}")
    return chosen


def matches(pattern: str, name: str) -> bool:
    """Return whether a pattern matches a module's name, or that of a module around it."""
    parts = name.split(".")
    return any(matches_name(".".join(parts[:n]), pattern) for n in range(1, len(parts) + 1))


def _is_scripted(pattern: str, names: list[str]) -> RegardError:
    are = "is TorchScript" if len(names) == 1 else "are TorchScript"
    return RegardError(
        f"the edit of {pattern!r} changed nothing: no attention was seen there; {', '.join(names)} "
        f"{are}, whose functions torch does not show, so edit the Python module instead"
    )


def _no_match(pattern: str, num_heads: Mapping[str, int]) -> RegardError:
    if not num_heads:
        return RegardError(
            f"the edit of {pattern!r} changed nothing: no attention was seen inside "
            "`with regard.edit(...)`; call the model there, and in the same thread"
        )
    near = get_close_matches(pattern, num_heads, n=1, cutoff=0.3)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return RegardError(
        f"the edit of {pattern!r} changed nothing: no attention was called there.{hint} "
        f"Attention was called in: {', '.join(num_heads)}."
    )
