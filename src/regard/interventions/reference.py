"""Contexts of heads in a run without edits, and their means over a reference batch."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from regard._support.torch_modes import to_float64
from regard.errors import RegardError
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
    sums: dict[str, dict[int, Tensor]] = {}  # by module and head
    counts: dict[tuple[str, int], int] = {}

    def add(attention: EditableAttention) -> None:
        local, name = list(range(attention.shape[1])), attention.location.name
        context = to_float64(attention.head_context(local).detach())
        of_module = sums.setdefault(name, {})
        for head, total in zip(attention.model_heads(local), context.sum((0, 2)), strict=True):
            of_module[head] = of_module.get(head, 0) + total
            counts[name, head] = counts.get((name, head), 0) + context[:, 0, :, 0].numel()

    with torch.no_grad(), edit(model) as edits:
        edits["*"].apply(Inspection(add))
        for batch in batches:
            call_model(model, batch)
    return {
        name: torch.stack([heads[n] / counts[name, n] for n in sorted(heads)]).float()
        for name, heads in sums.items()
    }


def head_contexts(model: nn.Module, batch: Any, modules: str = "*") -> dict[str, Tensor]:
    """Return the context of every head in one pass, to patch them into another run.

    Args:
        model: any PyTorch model.
        batch: what the model is called with, as for `reference_means`.
        modules: name or pattern of the modules; all by default.

    Returns:
        For each module that called attention, (batch, head, query, value).

    Raises:
        RegardError: if a module is called more than once, as layers that share parameters are.

    Example:
        >>> import torch, regard
        >>> model = regard.MultiHeadAttention(12, heads=3)
        >>> clean, corrupted = torch.randn(2, 1, 5, 12)
        >>> contexts = head_contexts(model, clean)
        >>> with regard.edit(model) as edits:
        ...     edits["*"].heads(1).set_context(contexts["MultiHeadAttention"])
        ...     output = model(corrupted)
    """
    contexts: dict[str, Tensor] = {}

    def add(attention: EditableAttention) -> None:
        name = attention.location.name
        if name in contexts:
            raise RegardError(
                f"{name} was called more than once, so that its contexts cannot be told apart"
            )
        contexts[name] = attention.head_context(list(range(attention.shape[1]))).detach()

    with torch.no_grad(), edit(model) as edits:
        edits[modules].apply(Inspection(add))
        call_model(model, batch)
    return contexts


def call_model(model: nn.Module, batch: Any) -> Any:
    """Call a model with a batch: a mapping, a tuple or list, or a single argument."""
    if isinstance(batch, Mapping) or hasattr(batch, "keys"):
        return model(**batch)
    return model(*batch) if isinstance(batch, tuple | list) else model(batch)
