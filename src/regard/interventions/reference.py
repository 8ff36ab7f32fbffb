"""Means of heads over a reference batch, to ablate heads by."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from regard.interventions.edit_mode import edit
from regard.interventions.editable import EditableAttention
from regard.interventions.operations import Inspection


def reference_means(model: nn.Module, batches: Iterable[Any]) -> dict[str, Tensor]:
    """Average the context of every head over batches and positions, padding included.

    Args:
        model: any PyTorch model.
        batches: what the model is called with: mappings are keyword arguments, tuples and lists
            positional ones, anything else is the only argument.

    Returns:
        For each module that called attention, the means (head, value) of its heads.

    Example:
        >>> import torch, regard
        >>> model = regard.MultiHeadAttention(12, heads=3)
        >>> means = reference_means(model, [torch.randn(2, 5, 12)])
        >>> means["MultiHeadAttention"].shape
        torch.Size([3, 4])
    """
    sums: dict[str, Tensor] = {}
    counts: dict[str, int] = {}

    def add(attention: EditableAttention) -> None:
        context = attention.head_context(list(range(attention.shape[1]))).detach().double()
        name, count = attention.location.name, context.shape[0] * context.shape[2]
        sums[name] = sums.get(name, 0) + context.sum((0, 2))
        counts[name] = counts.get(name, 0) + count

    with torch.no_grad(), edit(model) as edits:
        edits["*"].apply(Inspection(add))
        for batch in batches:
            call_model(model, batch)
    return {name: (total / counts[name]).float() for name, total in sums.items()}


def call_model(model: nn.Module, batch: Any) -> Any:
    """Call a model with a batch: a mapping, a tuple or list, or a single argument."""
    if isinstance(batch, Mapping) or hasattr(batch, "keys"):
        return model(**batch)
    return model(*batch) if isinstance(batch, tuple | list) else model(batch)
