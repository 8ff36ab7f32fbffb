"""Gradients with respect to attention weights, also where a fused kernel never computes them.

The context of attention is linear in the weights, C = A V. The gradient of any scalar with respect
to A is therefore ∂/∂C · Vᵀ, which autograd gives for every kernel. Where the model computes its
weights itself, the gradient is that of the weights which it multiplies with the values.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from regard.capture.call_site import ModuleNames
from regard.capture.calls import CapturedCall
from regard.capture.capture import Capture
from regard.capture.capture_mode import CaptureMode
from regard.capture.modes import compiled_models_run_eagerly
from regard.capture.recognised_attention import RecognisedAttention
from regard.capture.recorder import Recorder
from regard.capture.records import CapturedAttention
from regard.errors import RegardError

ToWeights = Callable[[Tensor], Tensor]


class _Part(NamedTuple):
    """A tensor of the autograd graph, and how its gradient becomes that of some weights."""

    tensor: Tensor
    to_weights: ToWeights  # returns (batch, head, query, key)


class Sources(NamedTuple):
    """What the weights of a record were computed from, by the graph of autograd."""

    records: frozenset[int]  # indices of others
    inputs: frozenset[int]


class GradientCapture:
    """A `Capture` whose weights can be differentiated by: what `watch_gradients` yields."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self._parts: dict[int, list[_Part]] = {}  # by id of a record: one for each of its calls

    def add(self, record: CapturedAttention, part: _Part) -> None:
        """Add the part of a call that became, or continued, a record."""
        self._parts.setdefault(id(record), []).append(part)

    def remove(self, records: list[CapturedAttention]) -> None:
        """Remove the parts of records that were removed."""
        for record in records:
            self._parts.pop(id(record), None)

    def gradients(self, scalar: Tensor) -> list[Tensor]:
        """Return the gradient of a scalar with respect to the weights of every record.

        Args:
            scalar: a tensor computed from the model's output; its graph is kept.

        Returns:
            For each record (batch, head, query, key); zeros where the scalar does not depend on it.

        Raises:
            RegardError: if some layer is not part of the graph.
        """
        parts_of = [(record, self._parts.get(id(record), [])) for record in self.capture]
        for record, parts in parts_of:
            if not parts or not all(part.tensor.requires_grad for part in parts):
                raise RegardError(
                    f"no gradient reaches the attention of {record.name}: does the model run it "
                    "under torch.no_grad, or detach what it reads?"
                )
        tensors = [part.tensor for _, parts in parts_of for part in parts]
        found = iter(torch.autograd.grad(scalar, tensors, retain_graph=True, allow_unused=True))
        with torch.no_grad():
            return [
                _join(record, [(part, next(found)) for part in parts]) for record, parts in parts_of
            ]

    def sources(self, inputs: Sequence[Tensor]) -> list[Sources]:
        """Return for each record the other records, and the inputs, that it was computed from.

        Args:
            inputs: leaves of the graph.
        """
        marks: dict[Any, int] = {id(x): 1 << n for n, x in enumerate(inputs)}
        parts = [self._parts.get(id(record), []) for record in self.capture]
        nodes = [[x.tensor.grad_fn for x in own if x.tensor.grad_fn] for own in parts]
        for n, own in enumerate(nodes, start=len(inputs)):
            marks |= dict.fromkeys(own, 1 << n)
        graph, found = _Graph(marks), []
        for n, own in enumerate(nodes):
            bits = reduce(or_, map(graph.sources, own), 0)
            indices = [k for k in range(bits.bit_length()) if bits >> k & 1]
            records = frozenset(k - len(inputs) for k in indices if k >= len(inputs)) - {n}
            found.append(Sources(records, frozenset(k for k in indices if k < len(inputs))))
        return found


class _Graph:
    """The autograd graph behind some tensors, searched for what they were computed from."""

    def __init__(self, marks: dict[Any, int]) -> None:
        self._marks = marks  # by node: bits of what it stands for
        self._found: dict[Any, int] = {}  # by node: marks of all that it was computed from

    def sources(self, node: Any) -> int:
        """Return the marks of all nodes that a node was computed from, without its own."""
        stack = [node]
        while stack:
            latest = stack[-1]
            before = [x for x, _ in latest.next_functions if x is not None]
            missing = [x for x in before if x not in self._found]
            if missing:
                stack += missing
                continue
            self._found[stack.pop()] = reduce(
                or_, (self._found[x] | self._mark(x) for x in before), 0
            )
        return self._found[node]

    def _mark(self, node: Any) -> int:
        variable = getattr(node, "variable", None)  # of a leaf
        return self._marks.get(node if variable is None else id(variable), 0)


@contextmanager
def watch_gradients(model: nn.Module) -> Iterator[GradientCapture]:
    """Capture the full weights of a model as `watch` does, and what their gradients need.

    Example:
        >>> model = nn.MultiheadAttention(12, num_heads=3, batch_first=True)
        >>> x = torch.randn(2, 5, 12)
        >>> with watch_gradients(model) as capture:
        ...     output, _ = model(x, x, x, need_weights=False)
        >>> capture.gradients(output.sum())[0].shape
        torch.Size([2, 3, 5, 5])
    """
    recorder = Recorder(type(model).__name__, "all")
    gradient_capture = GradientCapture(recorder.capture)
    mode = _GradientMode(ModuleNames(model), recorder, gradient_capture)
    with compiled_models_run_eagerly(), mode.observing(), mode:
        try:
            yield gradient_capture
        finally:
            mode.close()


class _GradientMode(CaptureMode):
    """A capture mode that also keeps the tensors whose gradients are needed."""

    def __init__(
        self, names: ModuleNames, recorder: Recorder, gradient_capture: GradientCapture
    ) -> None:
        super().__init__(names, recorder)
        self._gradient_capture = gradient_capture

    def _record(self, attention: RecognisedAttention) -> CapturedAttention | None:
        """Record a call, and keep the tensor that its gradient comes from."""
        record = super()._record(attention)
        if record is not None:
            self._gradient_capture.add(record, _part_of(attention))
        return record

    def on_retraction(self, softmaxes: frozenset[int]) -> None:
        """Remove the records of some softmaxes, and what was kept for them."""
        self._gradient_capture.remove(self._recorder.remove(softmaxes))


def _part_of(attention: RecognisedAttention) -> _Part:
    """Return what the gradient of a call's weights is computed from."""
    match = attention.match
    if match is not None:
        return _Part(match.operand, match.to_weights)
    return _Part(attention.context, _from_context(attention.call, attention.by_head))


def _from_context(call: CapturedCall, by_head: ToWeights) -> ToWeights:
    """Return how the gradient of a call's context becomes that of its weights: ∂/∂C · Vᵀ."""
    values, num_heads = call.values, call.shape[1]
    if values is None:
        raise RegardError("the values of this attention are not known")
    groups = [head * values.shape[1] // num_heads for head in range(num_heads)]

    def to_weights(gradient: Tensor) -> Tensor:
        per_head = values[:, groups].to(gradient.dtype)
        return torch.matmul(by_head(gradient), per_head.transpose(-2, -1))

    return to_weights


def _join(record: CapturedAttention, parts: Sequence[tuple[_Part, Tensor | None]]) -> Tensor:
    """Join the gradients of a record's steps or parts."""
    weights = record.flat_weights
    assert weights is not None, "kept in full"
    if record.has_window_parts:
        raise RegardError(
            f"{record.name} multiplies the keys of windows and other keys with their values one "
            "after the other, whose gradients cannot be joined"
        )
    rows = []
    for part, gradient in parts:
        gradient = torch.zeros_like(part.tensor) if gradient is None else gradient
        rows.append(part.to_weights(gradient).cpu())
    if record.joined_axis != 3:
        width = weights.shape[-1]
        rows = [pad(x, (0, max(0, width - x.shape[-1])))[..., :width] for x in rows]
    joined = torch.cat(rows, record.joined_axis)
    if joined.shape != weights.shape:
        raise RegardError(
            f"the gradient of {record.name} has shape {tuple(joined.shape)}, but its weights "
            f"{tuple(weights.shape)}: its heads could not be followed"
        )
    return joined
