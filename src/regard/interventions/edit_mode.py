"""`edit`, and the torch function mode behind it that replaces results of attention."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention import AttentionCall
from regard.capture.arrangement import PLAIN_AXES, CallAxes
from regard.capture.attention_interface import AttentionFunctionCall
from regard.capture.call_site import CallSite, ModuleNames
from regard.capture.calls import CapturedCall, capture_regard_call
from regard.capture.capture import Capture, classify
from regard.capture.capture_mode import (
    FUSED_FUNCTIONS,
    CaptureMode,
    function_name,
    tensors_by_position,
)
from regard.capture.edited import edited_weights, register_edited_weights
from regard.capture.isolation import (
    compiled_models_run_eagerly,
    is_isolated,
    side_effect_free_copy,
    uncaptured,
)
from regard.capture.mode_stack import push_below
from regard.capture.tracked_weights import MatchedAttention
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
    mode = EditMode(names, edits, type(model).__name__)
    with compiled_models_run_eagerly(), mode.observing(innermost=True), mode:
        yield edits
    edits.check()


class EditMode(CaptureMode):
    """A torch function mode that recognises attention and replaces its result."""

    def __init__(self, names: ModuleNames, edits: Edits, model: str) -> None:
        super().__init__(names, Capture(model))
        self._edits = edits
        self._location: CallLocation | None = None  # of the call that was recognised last
        self._call: CapturedCall | None = None
        self._match: MatchedAttention | None = None  # of it, if the model wrote it out
        self._decoder_offset = 0  # position of the queries of the latest self-attention

    def __enter__(self) -> "EditMode":
        """Enter below all captures, which then see the edited results, and above other edits."""
        push_below(self, lambda entry: isinstance(entry, EditMode))
        return self

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run a torch function, and edit its result if it is attention."""
        if self._paused():
            return func(*args, **(kwargs or {}))
        out = super().__torch_function__(func, types, args, kwargs)
        location, call = self._take_recognised()
        if location is None or call is None:
            return out
        with uncaptured():
            positional, rest = tensors_by_position(args, kwargs or {})
            name = function_name(func)
            if name in FUSED_FUNCTIONS:
                return self._edit_fused(location, name, positional, rest, out)
            return self._edit_product(location, call, func, positional, rest, out)

    def on_regard_call(self, call: AttentionCall, run: Callable[[], object]) -> object:
        """Run a call of regard's own attention, and edit its result."""
        score = side_effect_free_copy(call.score)  # with the state that it has before the call
        result = super().on_regard_call(call, run)
        location, recognised = self._take_recognised()
        if location is None or recognised is None:
            return result
        with uncaptured(), call.preserve_rng():
            context = result[0] if isinstance(result, tuple) else result
            assert isinstance(context, Tensor), "attention returns a context"
            again = capture_regard_call(replace(call, score=score))
            elements = _elements(context).reshape(*again.shape[:3], -1)
            attention = EditableAttention(
                location, again, context, elements, edited_weights(context)
            )
            self._apply(attention)
            if not isinstance(result, tuple):
                return attention.context
            return attention.context, _replace_weights(result[1], attention)

    def on_attention_function(self, call: AttentionFunctionCall, run: Callable[[], Any]) -> Any:
        """Run an attention function of transformers, and edit its result."""
        result = super().on_attention_function(call, run)
        location, recognised = self._take_recognised()
        if location is None or recognised is None:
            return result
        with uncaptured():
            context = result[0] if isinstance(result, tuple) else result
            elements = _elements(context).transpose(1, 2)  # (batch, query, head, value)
            attention = EditableAttention(
                location, call.to_captured(), context, elements, edited_weights(context)
            )
            self._apply(attention)
            if not isinstance(result, tuple):
                return attention.context
            return attention.context, *result[1:]

    def _paused(self) -> bool:
        # in a backward pass too, where checkpointed layers run again
        return self._in_regard_call or is_isolated()

    def _record(
        self,
        call: CapturedCall,
        same_rows: bool | None,
        from_cache: bool,
        out: Any,
        axes: CallAxes = PLAIN_AXES,
        site: CallSite | None = None,
    ) -> None:
        self._num_recognised += 1
        site = site or self._names.find_call_site()
        if site is None or not all(call.shape):
            return
        kind = classify(call, same_rows, from_cache)
        if kind != "cross":
            self._decoder_offset = call.offset if kind == "causal" else 0
        name = site.module_name
        self._edits.num_heads[name] = max(self._edits.num_heads.get(name, 0), call.shape[1])
        if self._edits.matching(name):
            # in cross-attention a single query is that of the self-attention before it
            is_step = kind == "cross" and call.shape[2] == 1
            offset = self._decoder_offset if kind == "causal" or is_step else 0
            self._location, self._call = CallLocation(name, kind, offset), call

    def _record_match(self, match: MatchedAttention, out: Any) -> None:
        self._match = match
        super()._record_match(match, out)

    def _take_recognised(self) -> tuple[CallLocation | None, CapturedCall | None]:
        recognised = self._location, self._call
        self._location = self._call = None
        return recognised

    def _handle_failure(self, error: Exception, args: tuple[Any, ...]) -> None:
        """Raise an error in a module that has edits; elsewhere nothing is to be edited."""
        if isinstance(error, RegardError):
            raise error
        site = self._names.find_call_site()
        if site is not None and self._edits.matching(site.module_name):
            raise RegardError(f"cannot edit {site.module_name}: {error}") from error

    def _edit_fused(
        self,
        location: CallLocation,
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        out: Any,
    ) -> Any:
        call, _ = self._fused_call(name, args, kwargs)
        context = out[0] if isinstance(out, tuple) else out
        elements = self._context_layout(name, args)(_elements(context))
        attention = EditableAttention(location, call, context, elements, edited_weights(context))
        self._apply(attention)
        return (attention.context, *out[1:]) if isinstance(out, tuple) else attention.context

    def _edit_product(
        self,
        location: CallLocation,
        call: CapturedCall,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        out: Tensor,
    ) -> Tensor:
        match, self._match = self._match, None
        assert match is not None, "a product was matched"
        if match.is_sum:
            raise RegardError(
                f"{location.name} multiplies weights with values element by element and sums "
                "later, which cannot be edited; write the product as a matmul or einsum"
            )
        elements = match.to_weights(_elements(match.operand))
        product = Product(func, args, kwargs, match.position, elements)
        attention = WrittenOutAttention(location, call, out, edited_weights(out), product)
        self._apply(attention)
        return attention.context

    def _apply(self, attention: EditableAttention) -> None:
        for matching in self._edits.matching(attention.location.name):
            matching.apply(attention)
        if attention.edited:
            detached = {head: weights.detach() for head, weights in attention.edited.items()}
            register_edited_weights(attention.context, detached)


def _elements(context: Tensor) -> Tensor:
    return torch.arange(context.numel(), device=context.device).view(context.shape)


def _replace_weights(weights: Tensor, attention: EditableAttention) -> Tensor:
    """Return the weights of `look` with those that were edited."""
    index = _elements(weights).reshape(attention.shape)
    for head, edited in attention.edited.items():
        weights = scatter(weights, index[:, head], edited)
    return weights
