"""One recognised attention call, as modes pass it on: to records, to gradients, to edits."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from regard.capture.call_site import CallSite
from regard.capture.calls import CapturedCall
from regard.capture.functions import FunctionCall
from regard.capture.layout import PLAIN_AXES, CallAxes
from regard.capture.weights import MatchedAttention

CaptureAgain = Callable[[], CapturedCall]
ByHead = Callable[[Tensor], Tensor]


@dataclass(slots=True)
class RecognisedAttention:
    """An attention call of the model, and what its function returned.

    Attributes:
        call: from which the weights follow; captured without gradients.
        result: what the function returned: the context, or a tuple that begins with it.
        same_rows: whether queries and keys come from the same rows; None if unknown.
        from_cache: whether rows were appended to the keys, as a KV cache does.
        capture_again: captures the call once more, with gradients if they are enabled.
        by_head: brings a tensor of the context's shape to (batch, head, query, value).
        axes: what is known about the axes.
        site: where the model called it.
        function: the torch function; None if it is no torch function.
        match: the product with values, if the model computes the weights itself.
        returns_weights: whether `result` is a context and its weights.
    """

    call: CapturedCall
    result: Any
    same_rows: bool | None
    from_cache: bool
    site: CallSite
    capture_again: CaptureAgain
    by_head: ByHead
    axes: CallAxes = PLAIN_AXES
    function: FunctionCall | None = None
    match: MatchedAttention | None = None
    returns_weights: bool = False

    @property
    def context(self) -> Tensor:
        """The context, in the model's layout and autograd graph."""
        context: Tensor = self.result[0] if isinstance(self.result, tuple) else self.result
        return context

    def with_context(self, context: Tensor) -> Any:
        """Return the result with another context."""
        return (context, *self.result[1:]) if isinstance(self.result, tuple) else context

    @property
    def is_in_place(self) -> bool:
        """Whether the torch function changed one of its arguments, which is the result."""
        return self.function is not None and any(x is self.context for x in self.function.inputs)

    @property
    def written_tensor(self) -> Tensor | None:
        """The tensor that the torch function wrote its result to; None if it made a new one."""
        if self.function is None or self.is_in_place:
            return self.context if self.is_in_place else None
        out: Tensor | None = self.function.kwargs.get("out")
        return out
