"""`edit`, and the torch function mode behind it that replaces results of attention."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard._support.entered_context import entered_context
from regard._support.torch_modes import in_vmap_or_jvp
from regard.capture.attention_mode import AttentionMode
from regard.capture.call_site import ModuleNames
from regard.capture.calls import (
    CapturedCall,
    EdgeWeights,
    edited_weights,
    register_edited_weights,
)
from regard.capture.functions import function_name, python_twin
from regard.capture.layout import CallAxes, Part
from regard.capture.modes import (
    compiled_models_run_eagerly,
    is_isolated,
    push_below,
    uncaptured,
)
from regard.capture.recognised_attention import RecognisedAttention
from regard.capture.records import classify
from regard.capture.weights import MatchedAttention
from regard.errors import RegardError, wrong_type
from regard.interventions.edges import EdgeAttention
from regard.interventions.editable import (
    CallLocation,
    EditableAttention,
    Product,
    WrittenOutAttention,
    scatter,
)
from regard.interventions.edits import Edits
from regard.interventions.positions import PositionTracker

_BACKWARD = {"backward", "grad"}


@entered_context("with regard.edit(model) as edit:")
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
    edits.check(mode.other_softmaxes())


class EditMode(AttentionMode):
    """A mode that replaces the results of attention in modules that have edits."""

    def __init__(self, names: ModuleNames, edits: Edits) -> None:
        super().__init__(names)
        self._edits = edits
        self._positions = PositionTracker()
        self._parts: dict[tuple[str, frozenset[int]], int] = {}  # items or heads seen so far
        self._latest_product: _FirstProduct | None = None

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
        if function_name(func) in _BACKWARD and not self._paused():
            with self:  # which runs checkpointed layers again
                return python_twin(func)(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs)

    def on_attention(self, attention: RecognisedAttention) -> Any:
        """Return the result of a call with the edits of its module."""
        self._check_transform(attention.site.module_name)
        location = self._locate(attention)
        edits = self._edits.matching(location.name)
        if not edits:
            return attention.result
        with uncaptured():
            editable = self._make_editable(attention, location)
            for edit in edits:
                edit.apply(editable)
            if (out := attention.written_tensor) is not None:
                editable.context = out.copy_(editable.context)
            if editable.edited:
                detached = {head: weights.detach() for head, weights in editable.edited.items()}
                register_edited_weights(editable.context, detached)
            if attention.returns_weights:
                return editable.context, _replace_weights(attention.result[1], editable)
            return attention.with_context(editable.context)

    def other_softmaxes(self) -> dict[str, str]:
        """Return by module what was seen of softmaxes that did not become attention."""
        sites: dict[str, str] = {}
        for softmax in self._recogniser.weights.unresolved():
            if (site := softmax.site) is not None:
                is_mixture = softmax.is_feature or softmax.state == "not attention"
                reason = "is no attention over positions" if is_mixture else "meets no values"
                sites[site.module_name] = (
                    f"the softmax in {site.module_name} ({site.location}) {reason}"
                )
        return sites

    def on_retraction(self, softmaxes: frozenset[int]) -> None:
        """Forget a product whose weights are normalised after it: they are edited there."""
        if self._latest_product is not None and self._latest_product.softmaxes == softmaxes:
            self._latest_product = None

    def on_failure(self, error: Exception, args: tuple[Any, ...]) -> None:
        """Raise an error in a module that has edits; elsewhere nothing is to be edited."""
        if isinstance(error, RegardError):
            raise error
        site = self._names.find_call_site()
        if site is not None and self._edits.matching(site.module_name):
            self._check_transform(site.module_name)
            raise RegardError(f"cannot edit {site.module_name}: {error}") from error

    def _check_transform(self, name: str) -> None:
        """Raise if a transform of torch.func hides the values of tensors."""
        if in_vmap_or_jvp() and self._edits.matching(name):
            raise RegardError(
                f"cannot edit {name} under torch.func.vmap or forward-mode differentiation; call "
                "the model with a batch, or use torch.func.grad"
            )

    def _paused(self) -> bool:
        # in a backward pass too, where checkpointed layers run again
        return self._in_regard_call or is_isolated()

    def _locate(self, attention: RecognisedAttention) -> CallLocation:
        """Return the module of a call, its positions, and how its weights were made."""
        call, axes, name = attention.call, attention.axes, attention.site.module_name
        kind = classify(call, attention.same_rows, attention.from_cache)
        positions = self._positions.locate(name, call, kind, axes)
        first = self._count_part(attention)
        first_head = first if axes.part == "head" else 0
        num_heads = first_head + call.shape[1]
        self._edits.num_heads[name] = max(self._edits.num_heads.get(name, 0), num_heads)
        return CallLocation(
            name,
            kind,
            positions.query,
            first_key=positions.key,
            first_item=first if axes.part == "batch" else 0,
            first_head=first_head,
            is_part=axes.part is not None,
            normaliser=axes.normaliser,
            applied=axes.applied,
            has_shifted_keys=positions.are_shifted,
        )

    def _count_part(self, attention: RecognisedAttention) -> int:
        """Return how many items or heads of the same softmax were multiplied before."""
        axes = attention.axes
        if axes.part is None:
            return 0
        key = attention.site.module_name, axes.softmaxes
        first = self._parts.get(key, 0)
        self._parts = {key: first + attention.call.shape[1 if axes.part == "head" else 0]}
        return first

    def _make_editable(
        self, attention: RecognisedAttention, location: CallLocation
    ) -> EditableAttention:
        """Return the weights and the context of a call, with gradients."""
        context, call, match = attention.context, attention.call, attention.match
        edited = edited_weights(context)
        if match is None:
            elements = attention.by_head(_elements(context))
            return EditableAttention(location, attention.capture_again(), context, elements, edited)
        if isinstance(call, EdgeWeights):
            assert match.multiplication is not None and match.summed is not None
            return EdgeAttention(
                location, call, context, edited, match.multiplication, match.summed
            )
        if attention.function is not None and attention.is_in_place:
            name = attention.function.name.rstrip("_")
            raise RegardError(
                f"{location.name} adds its context to another tensor in place ({name}_), so that "
                f"it cannot be computed again and edited; {name}, which returns a new one, can be"
            )
        call, elements = self._weight_layout(attention, match)
        product = _product_of(attention, match, elements)
        return WrittenOutAttention(location, call, context, edited, product)

    def _weight_layout(
        self, attention: RecognisedAttention, match: MatchedAttention
    ) -> tuple[CapturedCall, Tensor]:
        """Return a call, and the index (batch, head, query, key) of its weights in their tensor.

        Weights may be multiplied a second time, with relative positions for instance, which do not
        have the axes of values. They keep the layout of their first product.
        """
        name, latest = attention.site.module_name, self._latest_product
        multiplication = match.multiplication
        weights = match.operand if multiplication is None else multiplication.weights
        is_again = latest is not None and (name, match.softmaxes) == (latest.name, latest.softmaxes)
        is_mixed = is_again and latest is not None and latest.part != match.part
        if match.part in ("query", "key") or is_mixed:
            raise _in_parts(name)
        if match.part is not None or latest is None or not is_again:
            arrange = match.to_weights if multiplication is None else multiplication.arrange
            elements = arrange(_elements(weights))
            self._latest_product = _FirstProduct(
                name, match.softmaxes, attention.call, weights, elements, attention.axes, match.part
            )
            return attention.call, elements
        if latest.weights is not weights:
            if attention.axes.region != latest.axes.region:
                raise _in_parts(name)
            raise RegardError(
                f"{name} multiplies its weights twice, in different layouts, which cannot be edited"
            )
        return latest.call, latest.elements


def _in_parts(name: str) -> RegardError:
    return RegardError(
        f"{name} splits its weights and multiplies each part with values, which cannot be edited"
    )


class _FirstProduct(NamedTuple):
    """The first product of the weights of a softmax."""

    name: str
    softmaxes: frozenset[int]
    call: CapturedCall
    weights: Tensor
    elements: Tensor
    axes: CallAxes
    part: Part | None


def _product_of(
    attention: RecognisedAttention, match: MatchedAttention, elements: Tensor
) -> Product:
    """Return the product of weights with values, with the sum after it if that is a function."""
    function, multiplication = attention.function, match.multiplication
    assert function is not None, "the model multiplied them"
    if multiplication is None:
        return Product(function, match.position, elements)

    def add_up(product: Tensor) -> Any:
        return function.function(product, *function.args[1:], **function.kwargs)

    return Product(multiplication.function, multiplication.position, elements, add_up)


def _elements(context: Tensor) -> Tensor:
    return torch.arange(context.numel(), device=context.device).view(context.shape)


def _replace_weights(weights: Tensor, attention: EditableAttention) -> Tensor:
    """Return the weights of `look` with those that were edited."""
    index = _elements(weights).reshape(attention.shape)
    for head, edited in attention.edited.items():
        weights = scatter(weights, index[:, head], edited)
    return weights
