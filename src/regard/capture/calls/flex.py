"""A call of flex_attention, whose score and mask are functions."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from regard._support.precision import upcast
from regard.capture.calls.base import as_computed, weights_of
from regard.capture.mask_analysis import climbs, seen_by_some


class Flex:
    """A call of torch's flex_attention, as its higher-order operator receives it."""

    apart, added = True, 0

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
        self.queries, self.keys = as_computed(queries), as_computed(keys)
        self.memory: Tensor | None = self.keys
        self.values: Tensor | None = values.detach()
        batch, heads, count = queries.shape[:3]
        self.sizes = (batch, heads, count, keys.shape[2])
        self.offset = max(0, self.sizes[3] - self.sizes[2])
        self._scale = scale
        self._score = _over_all(score_mod, score_mod_other_buffers, prefix=(0,))
        self._mask = _over_all(block_mask[-1], mask_mod_other_buffers, prefix=())
        self.causal = self._is_causal()

    def reach(self, stop: int) -> int:
        """Count all keys: a function tells no more."""
        return self.sizes[3]

    def weigh(self, batch: slice, heads: list[int], rows: slice) -> Tensor:
        """Compute weights (batch, head, row, key)."""
        group = self.sizes[1] // self.keys.shape[1]
        queries = upcast(self.queries[batch][:, heads, rows])
        looked = self.keys[batch] if len(self.keys) > 1 else self.keys
        looked = upcast(looked[:, [head // group for head in heads]])
        scores = queries @ looked.transpose(-2, -1) * self._scale
        places = self._places(batch, heads, rows)
        hidden = ~self._mask(*places)
        return weights_of(self._score(scores, *places).masked_fill(hidden, -torch.inf), hidden=True)

    def hidden(self) -> Tensor | None:
        """Tell which keys (batch, key) the mask hides from everyone."""
        return ~seen_by_some(
            lambda start, stop: self._may_look(slice(start, stop)).any(2).any(1), self.sizes[2]
        )

    def _may_look(self, rows: slice) -> Tensor:
        heads = list(range(self.sizes[1]))
        return self._mask(*self._places(slice(None), heads, rows))

    def _places(self, batch: slice, heads: list[int], rows: slice) -> tuple[Tensor, ...]:
        sentences, _, queries, keys = self.sizes
        numbers = (range(sentences)[batch], heads, range(queries)[rows], range(keys))
        return tuple(torch.tensor(list(n), device=self.queries.device) for n in numbers)

    def _is_causal(self) -> bool:
        def sees(row: int, key: int) -> bool:
            return bool(self._may_look(slice(row, row + 1))[..., key:].any())

        return climbs(sees, *self.sizes[2:], self.offset)


def _over_all(
    function: Callable[..., Tensor], buffers: tuple[Any, ...], prefix: tuple[int, ...]
) -> Callable[..., Tensor]:
    """Let a function of single positions run over lists of them, as torch does itself."""
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
    from torch.nn.attention.flex_attention import _vmap_for_bhqkv

    mapped = _vmap_for_bhqkv(function, prefix=prefix, suffix=(None,) * len(buffers))

    def run(*args: Tensor) -> Tensor:
        with TransformGetItemToIndex():
            result: Tensor = mapped(*args, *buffers)
        return result

    return run
