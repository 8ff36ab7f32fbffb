"""`edit`, and the torch function mode behind it that replaces results of attention."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from regard.capture.attention_mode import AttentionMode
from regard.capture.call_site import ModuleNames
from regard.capture.calls import edited_weights, register_edited_weights
from regard.capture.modes import (
    compiled_models_run_eagerly,
    is_isolated,
    push_below,
    uncaptured,
)
from regard.capture.recognised import RecognisedAttention
from regard.capture.records import classify
from regard.errors import RegardError, wrong_type
from regard.interventions.editable import (
    CallLocation,
    EditableAttention,
    Product,
    WrittenOutAttention,
    scatter,
)
from regard.interventions.edits import Edits


@contextmanager
def edit(model: nn.Module) -> Iterator[Edits]:
    """Change the attention of a model: `with edit(model) as edits: ...; model(x)`.

    It works wherever `regard.watch` sees attention, under the same module names, and during
    generation with a KV cache. Nothing is changed in the model itself. Heads and modules without
    an edit give bit-identical results, except that compiled models and torch's fast path for
    `nn.TransformerEncoder` run as they do under `watch`. A `watch` at the same time records the
    edited weights. Nested contexts apply the edits of the outer one first.

    Gradients flow through edited attention; with activation checkpointing, call `backward` inside
    the context. Edited heads have no attention dropout where a fused kernel would apply it.

    Args:
        model: any PyTorch model, or a part of one.

    Yields:
        The edits, to be indexed by names of modules.

    Raises:
        TypeError: if `model` is no module.
        RegardError: on exit, if an edit matched no attention, head or position.

    Example:
        >>> import torch
        >>> model = torch.nn.MultiheadAttention(12, num_heads=3, batch_first=True)
        >>> x = torch.randn(2, 5, 12)
        >>> with edit(model) as edits:
        ...     edits["*"].heads([0, 2]).ablate()
        ...     edits["*"].block(queries=[4], keys=[0, 1])
        ...     output, _ = model(x, x, x, need_weights=False)
    """
    if not isinstance(model, nn.Module):
        raise wrong_type("model", "an nn.Module", model)
    names = ModuleNames(model)
    edits = Edits(names)
    mode = EditMode(names, edits)
    with compiled_models_run_eagerly(), mode.observing(innermost=True), mode:
        yield edits
    edits.check()


class EditMode(AttentionMode):
    """A mode that replaces the results of attention in modules that have edits."""

    def __init__(self, names: ModuleNames, edits: Edits) -> None:
        super().__init__(names)
        self._edits = edits
        self._decoder_offset = 0  # position of the queries of the latest self-attention

    def __enter__(self) -> "EditMode":
        """Enter below all captures, which then see the edited results, and above other edits."""
        push_below(self, lambda entry: isinstance(entry, EditMode))
        return self

    def on_attention(self, attention: RecognisedAttention) -> Any:
        """Return the result of a call with the edits of its module."""
        location = self._locate(attention)
        edits = self._edits.matching(location.name)
        if not edits:
            return attention.result
        with uncaptured():
            editable = _make_editable(attention, location)
            for edit in edits:
                edit.apply(editable)
            if editable.edited:
                detached = {head: weights.detach() for head, weights in editable.edited.items()}
                register_edited_weights(editable.context, detached)
            if attention.returns_weights:
                return editable.context, _replace_weights(attention.result[1], editable)
            return attention.with_context(editable.context)

    def on_failure(self, error: Exception, args: tuple[Any, ...]) -> None:
        """Raise an error in a module that has edits; elsewhere nothing is to be edited."""
        if isinstance(error, RegardError):
            raise error
        site = self._names.find_call_site()
        if site is not None and self._edits.matching(site.module_name):
            raise RegardError(f"cannot edit {site.module_name}: {error}") from error

    def _paused(self) -> bool:
        # in a backward pass too, where checkpointed layers run again
        return self._in_regard_call or is_isolated()

    def _locate(self, attention: RecognisedAttention) -> CallLocation:
        """Return the module and kind of a call, and the position of its first query."""
        call, name = attention.call, attention.site.module_name
        kind = classify(call, attention.same_rows, attention.from_cache)
        if kind != "cross":
            self._decoder_offset = call.offset if kind == "causal" else 0
        self._edits.num_heads[name] = max(self._edits.num_heads.get(name, 0), call.shape[1])
        # in cross-attention a single query is that of the self-attention before it
        is_step = kind == "cross" and call.shape[2] == 1
        offset = self._decoder_offset if kind == "causal" or is_step else 0
        return CallLocation(name, kind, offset)


def _make_editable(attention: RecognisedAttention, location: CallLocation) -> EditableAttention:
    """Return the weights and the context of a call, with gradients."""
    context = attention.context
    edited = edited_weights(context)
    if attention.match is not None:
        product = _product_of(attention, location)
        return WrittenOutAttention(location, attention.call, context, edited, product)
    elements = attention.by_head(_elements(context))
    return EditableAttention(location, attention.capture_again(), context, elements, edited)


def _product_of(attention: RecognisedAttention, location: CallLocation) -> Product:
    """Return the product of weights with values, to be run again."""
    match, function = attention.match, attention.function
    assert match is not None and function is not None, "the model multiplied them"
    if match.is_sum:
        raise RegardError(
            f"{location.name} multiplies weights with values element by element and sums "
            "later, which cannot be edited; write the product as a matmul or einsum"
        )
    elements = match.to_weights(_elements(match.operand))
    return Product(function.function, function.args, function.kwargs, match.position, elements)


def _elements(context: Tensor) -> Tensor:
    return torch.arange(context.numel(), device=context.device).view(context.shape)


def _replace_weights(weights: Tensor, attention: EditableAttention) -> Tensor:
    """Return the weights of `look` with those that were edited."""
    index = _elements(weights).reshape(attention.shape)
    for head, edited in attention.edited.items():
        weights = scatter(weights, index[:, head], edited)
    return weights
