"""Attention functions of transformers: kernels whose attention no torch function shows.

A model of transformers looks its attention function up by name in every call
(`AttentionInterface`, `attn_implementation=`): "sdpa", "flash_attention_2", a kernel from the hub,
or what a user has registered. While observers are registered, that lookup returns a function which
notifies them. The registry itself is not changed, and transformers is not imported.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from threading import Lock
from typing import Any

import torch
from torch import Tensor, nn

from regard._support.observers import Observers
from regard.capture.calls import KernelCall, visible_keys

PARAMETERS = ("module", "query", "key", "value", "attention_mask")


@dataclass
class AttentionFunctionCall:
    """A call of an attention function, with the arguments that transformers passes.

    Attributes:
        name: that the function is registered under.
        module: that calls it.
        queries: (batch, head, query, width).
        keys: (batch, key head, key, width).
        values: (batch, key head, key, value).
        mask: of padding (batch, key) or of pairs, which broadcasts to (batch, head, query, key).
        options: further arguments, such as `scaling`, `sliding_window` and `softcap`.
        context: what the function returned, (batch, query, head, value), before any edit; None as
            long as it has not run.
    """

    name: str
    module: nn.Module
    queries: Tensor
    keys: Tensor
    values: Tensor
    mask: Tensor | None
    options: Mapping[str, Any]
    context: Tensor | None = None

    def to_captured(self) -> KernelCall:
        """Return the call as one whose weights can be computed.

        Raises:
            TypeError: if the weights do not follow from the arguments.
        """
        paged = next((x for x in ("cache", "block_table") if self.options.get(x) is not None), None)
        if paged is not None:
            raise TypeError(f"{self.name!r} reads keys from a paged cache ({paged}=)")
        captured = KernelCall(
            self.queries,
            self.keys,
            self.values,
            self._combined_mask(),
            is_causal=self._is_plain_causal(),
            scale=self.options.get("scaling"),
            softcap=self.options.get("softcap"),
            sinks=self.options.get("s_aux"),
            padded_queries=self._padded_queries(),
        )
        has_dropout = bool(self.options.get("dropout"))
        if self.context is None or not (has_dropout or captured.agrees_with(self.context)):
            raise TypeError(
                f"the attention function {self.name!r} does not return softmax(QKᵀ)V of its inputs"
            )
        return captured

    def _is_causal(self) -> bool:
        """Return whether the kernel hides later keys by itself."""
        if self.mask is not None and self.mask.ndim != 2:
            return False  # a mask of pairs includes the causal one
        given = self.options.get("is_causal")
        return bool(getattr(self.module, "is_causal", True) if given is None else given)

    def _is_plain_causal(self) -> bool:
        # a single query at the end of its keys sees all of them
        is_square = self.queries.shape[2] == self.keys.shape[2]
        return is_square and self._is_causal() and self._combined_mask() is None

    def _combined_mask(self) -> Tensor | None:
        """Return all masks as one of pairs; None if there is none, or one that is plain causal."""
        queries, keys = self.queries.shape[2], self.keys.shape[2]
        bias, pairs = self.options.get("position_bias"), self.mask
        window, documents = self._window(), self._documents()
        padding = None if pairs is None or pairs.ndim != 2 else pairs.bool()[:, -keys:]
        if pairs is not None and padding is None:
            pairs = pairs[..., :keys]
            return pairs if bias is None else _add_bias(pairs, bias)
        has_causal_part = self._is_causal() and queries > 1
        is_plain = not has_causal_part or queries == keys
        if padding is None and bias is None and window is None and documents is None and is_plain:
            return None
        visible = visible_keys(
            queries,
            keys,
            is_causal=self._is_causal(),
            window=window,
            query_documents=None if documents is None else documents[0],
            key_documents=None if documents is None else documents[1],
            device=self.queries.device,
        )[None, None]
        visible = visible if padding is None else visible & padding[:, None, None]
        return visible if bias is None else _add_bias(visible, bias)

    def _window(self) -> int | None:
        window = self.options.get("sliding_window")
        return window if window is not None and self.keys.shape[2] > window else None

    def _documents(self) -> tuple[Tensor, Tensor] | None:
        """Return where packed texts start and end, among queries and keys."""
        starts = self.options.get("cu_seq_lens_q"), self.options.get("cu_seq_lens_k")
        if isinstance(starts[0], Tensor) and isinstance(starts[1], Tensor):
            return starts[0], starts[1]
        positions = self.options.get("position_ids")
        num_queries = self.queries.shape[2]
        if self.mask is not None or num_queries == 1 or not isinstance(positions, Tensor):
            return None
        if positions.shape != (1, num_queries):
            return None
        first = (positions[0] == positions.min()).nonzero().flatten()
        if len(first) < 2 or num_queries != self.keys.shape[2]:
            return None
        bounds = torch.cat([first, first.new_tensor([num_queries])])
        return bounds, bounds

    def _padded_queries(self) -> Tensor | None:
        """Return the queries (batch, query) at padded positions, which kernels leave out."""
        queries, keys = self.queries.shape[2], self.keys.shape[2]
        if self.mask is None or self.mask.ndim != 2 or queries > keys:
            return None
        return ~self.mask.bool()[:, -queries:]


AttentionFunctionObserver = Callable[[AttentionFunctionCall, Callable[[], Any]], Any]
"""Called as `observer(call, run)` in place of the call; returns what `run()` returns."""

_observers = Observers[AttentionFunctionCall]()
_lock = Lock()  # guards the two below
_num_contexts = 0
_restore: Callable[[], None] | None = None


@contextmanager
def observe_attention_functions(
    observer: AttentionFunctionObserver, *, innermost: bool = False
) -> Iterator[None]:
    """Call `observer(call, run)` around every attention function of transformers, in all threads.

    Nothing happens if transformers is not imported: then no model of it can run. Contexts may
    overlap in any order; the last one restores the lookup.

    Args:
        observer: must return what `run()` returns, or something in its place.
        innermost: call it inside of all observers that are not innermost.
    """
    global _num_contexts, _restore
    with _lock:
        _num_contexts += 1
        if _restore is None:
            _restore = _observe_lookup()
    try:
        with _observers.register(observer, innermost=innermost):
            yield
    finally:
        with _lock:
            _num_contexts -= 1
            if not _num_contexts and _restore is not None:
                _restore()
                _restore = None


def _observe_lookup() -> Callable[[], None] | None:
    """Let the lookup of attention functions return observed ones; return what undoes it."""
    modeling = sys.modules.get("transformers.modeling_utils")
    interface: Any = getattr(modeling, "AttentionInterface", None)
    if interface is None:
        return None
    lookup, own = interface.__getitem__, interface.__dict__.get("__getitem__")

    def get_observed(self: Any, name: str) -> Any:
        return _observed(name, lookup(self, name))

    def restore() -> None:
        if own is None:
            del interface.__getitem__
        else:
            interface.__getitem__ = own

    interface.__getitem__ = get_observed
    return restore


def _observed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an attention function that notifies observers."""

    @wraps(function)
    def run_observed(*args: Any, **kwargs: Any) -> Any:
        call = _read_call(name, args, kwargs)
        if call is None:
            return function(*args, **kwargs)

        def run_function() -> Any:
            result = function(*args, **kwargs)
            context = result[0] if isinstance(result, tuple) else result
            call.context = context if isinstance(context, Tensor) else None
            return result

        return _observers.run(call, run_function)

    return run_observed


def _read_call(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> AttentionFunctionCall | None:
    """Return the call by its arguments; None if they are not those of an attention function."""
    named = {**dict(zip(PARAMETERS, args, strict=False)), **kwargs}
    module, queries, keys, values, mask = (named.pop(x, None) for x in PARAMETERS)
    vectors = (queries, keys, values)
    if not isinstance(module, nn.Module) or len(args) > len(PARAMETERS):
        return None
    if not all(isinstance(x, Tensor) and x.ndim == 4 for x in vectors):
        return None
    mask = mask if isinstance(mask, Tensor) else None
    return AttentionFunctionCall(name, module, *vectors, mask, named)


def _add_bias(mask: Tensor, bias: Tensor) -> Tensor:
    """Return an additive mask of both."""
    if mask.dtype != torch.bool:
        return mask + bias
    return torch.where(mask, bias, torch.full_like(bias, -torch.inf))
