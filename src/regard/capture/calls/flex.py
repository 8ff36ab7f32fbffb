"""Calls of torch's flex_attention, whose score and mask are functions."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from regard._support.torch_modes import upcast
from regard.capture.calls.base import Shape, masked_softmax, round_like_autocast
from regard.capture.calls.mask_analysis import is_causal_sampled, visible_to_any
from regard.capture.calls.vectors import QueryKeyVectors


class FlexCall:
    """A call of flex_attention, with the arguments that its higher-order operator receives."""

    heads_independent, extra_keys = True, 0

    def __init__(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        score_mod: Callable[..., Tensor],
        block_mask: tuple[Any, ...],
        scale: float,
        kernel_options: dict[str, Any] | None = None,
        score_mod_other_buffers: tuple[Any, ...] = (),
        mask_mod_other_buffers: tuple[Any, ...] = (),
    ) -> None:
        self.queries, self.keys = round_like_autocast(queries), round_like_autocast(keys)
        self.raw_keys: Tensor | None = self.keys
        self.values: Tensor | None = values
        batch, heads, num_queries = queries.shape[:3]
        self.shape: Shape = (batch, heads, num_queries, keys.shape[2])
        self.offset = max(0, keys.shape[2] - num_queries)
        self._scale = scale
        self._score_mod = _vectorize(score_mod, score_mod_other_buffers, prefix=(0,))
        self._mask_mod = _vectorize(block_mask[-1], mask_mod_other_buffers, prefix=())
        self.is_causal = is_causal_sampled(self._sees_from, *self.shape[2:], self.offset)

    def visible_keys(self, stop: int) -> int:
        """Return the number of keys: a mask function has no known bound."""
        return self.shape[3]

    def weights(self, batch: slice, heads: list[int], rows: slice) -> Tensor:
        """Compute weights (batch, head, row, key)."""
        group = self.shape[1] // self.keys.shape[1]
        queries = upcast(self.queries[batch][:, heads, rows])
        keys = self.keys[batch] if len(self.keys) > 1 else self.keys
        keys = upcast(keys[:, [head // group for head in heads]])
        scores = queries @ keys.transpose(-2, -1) * self._scale
        indices = self._indices(batch, heads, rows)
        masked = ~self._mask_mod(*indices)
        scores = self._score_mod(scores, *indices).masked_fill(masked, -torch.inf)
        return masked_softmax(scores, has_mask=True)

    def fully_masked_keys(self) -> Tensor | None:
        """Return the keys (batch, key) masked for all queries."""

        def visible(start: int, stop: int) -> Tensor:
            return self._visible(slice(start, stop)).any(2).any(1)

        return ~visible_to_any(visible, self.shape[2])

    def vectors(self) -> QueryKeyVectors:
        """Return the queries and keys; what `score_mod` adds is not part of them."""
        return QueryKeyVectors(self.queries, self.keys, self._scale)

    def _sees_from(self, row: int, key: int) -> bool:
        return bool(self._visible(slice(row, row + 1))[..., key:].any())

    def _visible(self, rows: slice) -> Tensor:
        heads = list(range(self.shape[1]))
        return self._mask_mod(*self._indices(slice(None), heads, rows))

    def _indices(self, batch: slice, heads: list[int], rows: slice) -> tuple[Tensor, ...]:
        batch_size, _, queries, keys = self.shape
        indices = (range(batch_size)[batch], heads, range(queries)[rows], range(keys))
        return tuple(torch.tensor(list(n), device=self.queries.device) for n in indices)


def _vectorize(
    function: Callable[..., Tensor], buffers: tuple[Any, ...], prefix: tuple[int, ...]
) -> Callable[..., Tensor]:
    """Map a function of single positions over all of them, as torch's eager path does."""
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
    from torch.nn.attention.flex_attention import _vmap_for_bhqkv

    mapped = _vmap_for_bhqkv(function, prefix=prefix, suffix=(None,) * len(buffers))

    def run(*args: Tensor) -> Tensor:
        with TransformGetItemToIndex():
            result: Tensor = mapped(*args, *buffers)
        return result

    return run
