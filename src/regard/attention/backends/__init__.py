"""The three backends that compute attention: fused, blockwise and dense.

- `fused` runs a score that is a dot product in torch's scaled_dot_product_attention.
- `dense` computes score, softmax and weighted sum of all pairs at once: any score, but memory for
  queries × keys scores.
- `blockwise` does the same for a block of queries at a time: memory grows with the keys alone.

All of them give the same result up to rounding; `regard.attention.functional` chooses one.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, Protocol

from regard.attention.backends import blockwise, dense, fused
from regard.attention.call import AttentionCall
from regard.shapes import Context, Weights

BackendName = Literal["fused", "blockwise", "dense"]


class Backend(Protocol):
    """A way to compute attention. Each is a module with these two functions."""

    def attend(self, call: AttentionCall, dropout: float) -> Context:
        """Return the context; `dropout` is the probability of dropping a weight."""

    def weights(self, call: AttentionCall) -> Weights:
        """Return the attention weights before dropout, in the dtype of the queries."""


BACKENDS: Mapping[BackendName, Backend] = MappingProxyType(
    {"fused": fused, "blockwise": blockwise, "dense": dense}
)
"""Every backend by its name."""

__all__ = ["BACKENDS", "Backend", "BackendName", "blockwise", "dense", "fused"]
