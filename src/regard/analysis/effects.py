"""Effects of changing attention: importance of heads, knocked-out edges, patched heads.

Each function runs the model many times under `regard.edit` and compares a metric, a function
`metric(output, batch)` that returns a scalar tensor, such as a loss or a difference of logits.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from regard._support.progress import track
from regard.analysis.effect_results import HeadEffects, HeadImportance, KnockoutMatrix
from regard.capture import watch
from regard.errors import RegardError, wrong_type
from regard.interventions import EditableAttention, Inspection, call_model, edit, head_contexts

Metric = Callable[[Any, Any], Tensor | float]


def ablate_heads(
    model: nn.Module,
    batches: Iterable[Any],
    metric: Metric,
    *,
    modules: str = "*",
    mode: str = "zero",
    reference: Mapping[str, Tensor] | None = None,
    progress: bool = True,
) -> HeadEffects:
    """Ablate each head in turn and measure the change of a metric.

    Args:
        model: any model whose attention `regard.watch` sees.
        batches: what the model is called with: mappings are keyword arguments, tuples and lists
            positional ones, anything else is the only argument.
        metric: `metric(output, batch)`, a scalar; it need not be differentiable.
        modules: name or pattern of the modules; all by default.
        mode: of the ablation, "zero" or "mean".
        reference: means over a reference batch, for "mean".
        progress: show a progress bar on stderr.

    Returns:
        The change of the metric for each head, averaged over batches.

    Raises:
        RegardError: if there are no batches, no attention in these modules, or dropout changes the
            metric with every pass.

    Example:
        >>> import torch, regard
        >>> model = regard.MultiHeadAttention(12, heads=3)
        >>> batches = [torch.randn(2, 5, 12) for _ in range(2)]
        >>> ablate_heads(
        ...     model, batches, lambda output, batch: float(output.argmax() == 0), progress=False
        ... ).values.shape
        (1, 3)
    """
    batches = _to_list(batches)
    heads = _count_heads(model, batches[0], modules)
    base = _base_metric(model, batches, metric)
    changes = {}
    for cell in track(_cells(heads), "heads ablated", len(_cells(heads)), visible=progress):
        with edit(model) as edits:
            edits[cell[0]].heads(cell[1]).ablate(mode, reference=reference)
            changes[cell] = _mean_metric(model, batches, metric) - base
    return _effects(heads, changes, "change of the metric")


def head_importance(
    model: nn.Module,
    batches: Iterable[Any],
    metric: Metric,
    *,
    modules: str = "*",
    mode: str = "zero",
    reference: Mapping[str, Tensor] | None = None,
    progress: bool = True,
) -> HeadImportance:
    """Measure the importance of every head by ablating it, and estimate it by gradients.

    The estimate needs one pass per batch rather than one per head (Michel et al. 2019, "Are Sixteen
    Heads Really Better than One?"): each head is multiplied by a factor of 1, and its importance is
    the mean over batches of the size of the metric's gradient with respect to that factor.

    Args:
        model: any model whose attention `regard.watch` sees.
        batches: what the model is called with: mappings are keyword arguments, tuples and lists
            positional ones, anything else is the only argument.
        metric: `metric(output, batch)`, a differentiable scalar.
        modules: name or pattern of the modules; all by default.
        mode: of the ablation, "zero" or "mean".
        reference: means over a reference batch, for "mean".
        progress: show a progress bar on stderr.

    Returns:
        Both importances, averaged over batches.

    Raises:
        RegardError: if there are no batches, no attention in these modules, the metric is no
            differentiable scalar, or dropout changes it with every pass.

    Example:
        >>> import torch, regard
        >>> model = regard.MultiHeadAttention(12, heads=3)
        >>> batches = [torch.randn(2, 5, 12) for _ in range(2)]
        >>> importance = head_importance(
        ...     model, batches, lambda output, batch: output.square().mean(), progress=False
        ... )
        >>> importance.ablation.values.shape, importance.gradient.values.shape
        ((1, 3), (1, 3))
    """
    batches = _to_list(batches)
    heads = _count_heads(model, batches[0], modules)
    _base_metric(model, batches[:1], metric)  # raises if dropout changes it
    gradients = _gate_gradients(model, batches, metric, modules, heads)
    ablation = ablate_heads(
        model,
        batches,
        metric,
        modules=modules,
        mode=mode,
        reference=reference,
        progress=progress,
    )
    return HeadImportance(ablation, _effects(heads, gradients, "size of the gradient"))


def patch(
    model: nn.Module,
    clean: Any,
    corrupted: Any,
    metric: Metric,
    *,
    of: Literal["weights", "context"] = "weights",
    modules: str = "*",
    progress: bool = True,
) -> HeadEffects:
    """Patch the attention of each head from a clean run into a corrupted one.

    Args:
        model: any model whose attention `regard.watch` sees.
        clean: inputs, as for `head_importance`.
        corrupted: inputs with as many positions.
        metric: `metric(output, batch)`, a scalar that differs between the two runs.
        of: what is patched: the "weights", which restore where a head looks, or its "context", all
            that a head contributes.
        modules: name or pattern of the modules; all by default.
        progress: show a progress bar on stderr.

    Returns:
        The share of the metric that each head restores: 0 as in the corrupted run, 1 as in the
        clean one.

    Raises:
        RegardError: if both runs have the same metric, or other numbers of positions, a module is
            called more than once, as layers that share parameters are, `of` is unknown, or dropout
            changes the metric with every pass.

    Example:
        >>> import torch, regard
        >>> model = regard.MultiHeadAttention(12, heads=3)
        >>> clean, corrupted = torch.randn(2, 1, 5, 12)
        >>> patch(
        ...     model, clean, corrupted, lambda output, batch: output[0, -1].sum(), progress=False
        ... ).values.shape
        (1, 3)
    """
    if of not in ("weights", "context"):
        raise RegardError(f"of must be 'weights' or 'context', but it is {of!r}")
    heads = _count_heads(model, clean, modules)
    with torch.no_grad(), watch(model, keep="all") as capture:
        target = _value(metric(call_model(model, clean), clean))
    for name in heads:
        num_calls = sum(record.name == name for record in capture)
        if num_calls != 1:
            raise RegardError(
                f"{name} was called {num_calls} times, so that its patterns cannot be patched one "
                "by one; choose others by modules="
            )
    contexts = head_contexts(model, clean, modules) if of == "context" else {}
    base = _base_metric(model, [corrupted], metric)
    if target == base:
        raise RegardError(f"clean and corrupted inputs must differ in the metric; both give {base}")
    shares = {}
    for cell in track(_cells(heads), "heads patched", len(_cells(heads)), visible=progress):
        with edit(model) as edits:
            name, head = cell
            if of == "context":
                edits[name].heads(head).set_context(contexts[name][:, head : head + 1])
            else:
                edits[name].heads(head).set_weights(capture.weights(name)[:, head : head + 1])
            shares[cell] = (_mean_metric(model, [corrupted], metric) - base) / (target - base)
    return _effects(heads, shares, "share of the metric restored")


def knockout_matrix(
    model: nn.Module,
    batch: Any,
    metric: Metric,
    queries: Sequence[int],
    keys: Sequence[int],
    *,
    modules: str = "*",
    progress: bool = True,
) -> KnockoutMatrix:
    """Remove each edge from a query to a key in all heads of some modules, one at a time.

    Args:
        model: any model whose attention `regard.watch` sees.
        batch: inputs, as for `head_importance`.
        metric: `metric(output, batch)`, a scalar.
        queries: positions of the queries.
        keys: positions of the keys.
        modules: name or pattern of the modules; all by default.
        progress: show a progress bar on stderr.

    Returns:
        The change of the metric for each edge.

    Raises:
        RegardError: if a position does not occur, or dropout changes the metric with every pass.

    Example:
        >>> import torch, regard
        >>> model = regard.MultiHeadAttention(12, heads=3)
        >>> knockout_matrix(
        ...     model, torch.randn(1, 5, 12), lambda output, batch: output.sum(),
        ...     queries=[3, 4], keys=[0, 1, 2], progress=False,
        ... ).values.shape
        (2, 3)
    """
    base = _base_metric(model, [batch], metric)
    edges = [(query, key) for query in queries for key in keys]
    changes = []
    for query, key in track(edges, "edges removed", len(edges), visible=progress):
        with edit(model) as edits:
            edits[modules].block(queries=[query], keys=[key])
            changes.append(_mean_metric(model, [batch], metric) - base)
    values = np.array(changes).reshape(len(queries), len(keys))
    return KnockoutMatrix(tuple(queries), tuple(keys), values)


def _to_list(batches: Iterable[Any]) -> list[Any]:
    """Return the batches; raise if there are none."""
    found = list(batches)
    if not found:
        raise RegardError("batches must hold one batch or more, but there are none")
    return found


def _count_heads(model: nn.Module, batch: Any, modules: str) -> dict[str, int]:
    """Return the number of heads of each module that calls attention."""
    heads: dict[str, int] = {}

    def count(attention: EditableAttention) -> None:
        name, last = attention.location.name, attention.model_heads([attention.shape[1] - 1])[0]
        heads[name] = max(heads.get(name, 0), last + 1)

    with torch.no_grad(), edit(model) as edits:
        edits[modules].apply(Inspection(count))
        call_model(model, batch)
    return heads


def _gate_gradients(
    model: nn.Module, batches: list[Any], metric: Metric, modules: str, heads: dict[str, int]
) -> dict[tuple[str, int], float]:
    sizes = {name: torch.zeros(count) for name, count in heads.items()}
    for batch in batches:
        gates = {name: torch.ones(count, requires_grad=True) for name, count in heads.items()}
        with torch.inference_mode(False), torch.enable_grad(), edit(model) as edits:
            edits[modules].gate(gates)
            value = _differentiable(metric(call_model(model, batch), batch))
            gradients = torch.autograd.grad(value, list(gates.values()), allow_unused=True)
        for name, gradient in zip(gates, gradients, strict=True):
            if gradient is not None:  # the metric depends on this module
                sizes[name] += gradient.abs() / len(batches)
    return {(name, head): float(sizes[name][head]) for name, head in _cells(heads)}


def _differentiable(value: Any) -> Tensor:
    """Return what a metric returned, if it is a scalar with a gradient."""
    _value(value)
    if not isinstance(value, Tensor) or not value.requires_grad:
        raise RegardError(
            "metric must return a tensor that is differentiable by the model's output, such as a "
            "loss or a logit, for the estimate by gradients; for another metric, such as an "
            "accuracy, use ablate_heads"
        )
    return value


def _base_metric(model: nn.Module, batches: list[Any], metric: Metric) -> float:
    """Return the metric without any edit.

    Raises:
        RegardError: if the model is in training mode and its dropout changes the metric.
    """
    base = _mean_metric(model, batches, metric)
    if model.training and base != _mean_metric(model, batches, metric):
        raise RegardError(
            "model must be in evaluation mode, as dropout changes the metric with every pass; call "
            "model.eval()"
        )
    return base


@torch.no_grad()
def _mean_metric(model: nn.Module, batches: list[Any], metric: Metric) -> float:
    return float(np.mean([_value(metric(call_model(model, batch), batch)) for batch in batches]))


def _value(value: Any) -> float:
    """Return what a metric returned as a number."""
    if isinstance(value, Tensor) and value.numel() != 1:
        raise RegardError(
            f"metric must return a scalar, but it returned a tensor of shape {tuple(value.shape)}; "
            "take its mean or its sum"
        )
    if not isinstance(value, Tensor | Real):
        raise wrong_type("what metric returns", "a scalar tensor or a number", value)
    return float(value.detach() if isinstance(value, Tensor) else value)


def _cells(heads: dict[str, int]) -> list[tuple[str, int]]:
    return [(name, head) for name, count in heads.items() for head in range(count)]


def _effects(
    heads: dict[str, int], effects: dict[tuple[str, int], float], label: str
) -> HeadEffects:
    values = np.full((len(heads), max(heads.values())), np.nan)
    for row, name in enumerate(heads):
        for head in range(heads[name]):
            values[row, head] = effects[name, head]
    return HeadEffects(tuple(heads), values, label)
