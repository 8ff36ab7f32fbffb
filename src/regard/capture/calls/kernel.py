"""Calls of fused kernels that transformers runs through its AttentionInterface."""

from collections.abc import Sequence

import torch
from torch import Tensor

from regard._support.torch_modes import upcast
from regard.capture.calls.base import masked_softmax
from regard.capture.calls.sdpa import SDPACall

MAX_RELATIVE_ERROR = 0.02  # of a context: kernels compute in half precision, or in TF32


class KernelCall(SDPACall):
    """A call of a kernel such as FlashAttention, whose weights are computed from its inputs.

    Args:
        queries: (batch, head, query, width).
        keys: (batch, key head, key, width).
        values: (batch, key head, key, value).
        mask: boolean or additive, broadcast to (batch, head, query, key); None if there is none,
            or none but `is_causal`.
        is_causal: no query attends to a later key; there are as many queries as keys.
        scale: of the dot products; by default 1 / sqrt(width).
        softcap: scores are capped as softcap · tanh(score / softcap).
        sinks: (head,), the score of a key without a value, to which a part of every row goes.
        padded_queries: (batch, query), the rows that the kernel leaves out.
    """

    def __init__(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        scale: float | None = None,
        softcap: float | None = None,
        sinks: Tensor | None = None,
        padded_queries: Tensor | None = None,
    ) -> None:
        super().__init__(queries, keys, values, mask, is_causal=is_causal, scale=scale)
        self.softcap, self._sinks, self._padded_queries = softcap, sinks, padded_queries

    def agrees_with(self, context: Tensor) -> bool:
        """Return whether weights × values give a context (batch, query, head, value).

        Three rows are compared. Where they differ, the kernel computes something else: a mask of
        its own, or no softmax.
        """
        batch, heads, queries, _ = self.shape
        if context.ndim != 4 or context.shape[:3] != (batch, queries, heads):
            return False
        assert self.values is not None, "a kernel has values"
        values = upcast(self.values)
        values = values[:, [head * values.shape[1] // heads for head in range(heads)]]
        errors, sizes = [], []
        for row in sorted({0, queries // 2, queries - 1}):
            weights = self.weights(slice(None), list(range(heads)), slice(row, row + 1))
            expected = torch.matmul(weights, values[:, :, : weights.shape[-1]])[:, :, 0]
            actual = upcast(context[:, row]).to(expected.dtype)
            if self._padded_queries is not None:
                is_real = ~self._padded_queries[:, row, None, None]
                expected, actual = expected * is_real, actual * is_real
            errors.append((expected - actual).norm())
            sizes.append(expected.norm())
        return bool(sum(errors) <= MAX_RELATIVE_ERROR * sum(sizes))

    def _score(self, queries: Tensor, keys: Tensor) -> Tensor:
        scores = super()._score(queries, keys)
        return scores if self.softcap is None else (scores / self.softcap).tanh() * self.softcap

    def _normalise(self, scores: Tensor, heads: list[int]) -> Tensor:
        if self._sinks is None:
            return super()._normalise(scores, heads)
        sinks = self._sinks.to(scores)[heads][None, :, None, None]
        with_sink = torch.cat([scores, sinks.expand(*scores.shape[:3], 1)], dim=-1)
        return masked_softmax(with_sink, has_mask=False)[..., :-1]


def visible_keys(
    num_queries: int,
    num_keys: int,
    *,
    is_causal: bool,
    window: int | None = None,
    query_documents: Sequence[int] | Tensor | None = None,
    key_documents: Sequence[int] | Tensor | None = None,
    device: torch.device | None = None,
) -> Tensor:
    """Return which keys each query may attend to, (query, key): FlashAttention's conventions.

    Queries are aligned with the last keys, of each document if there are several. A window of n
    has the n last keys, the query's own included; without a causal mask also the n - 1 next ones.

    Args:
        num_queries: their number.
        num_keys: their number.
        is_causal: hide later keys.
        window: size of the sliding window; None for all keys.
        query_documents: starts of packed texts among the queries and their end (`cu_seqlens_q`).
        key_documents: the same for the keys.
        device: where to put the result.
    """
    if query_documents is None or key_documents is None:
        query_documents, key_documents = (0, num_queries), (0, num_keys)
    visible = torch.zeros(num_queries, num_keys, dtype=torch.bool, device=device)
    query_starts, key_starts = (
        torch.as_tensor(x).tolist() for x in (query_documents, key_documents)
    )
    for n in range(len(query_starts) - 1):
        queries = torch.arange(query_starts[n], query_starts[n + 1], device=device)
        keys = torch.arange(key_starts[n], key_starts[n + 1], device=device)
        own = queries - query_starts[n + 1] + key_starts[n + 1]  # the key of each query's position
        distance = own[:, None] - keys[None, :]
        block = torch.ones_like(distance, dtype=torch.bool)
        if is_causal:
            block &= distance >= 0
        if window is not None:
            block &= distance.abs() < window
        visible[queries[:, None], keys[None, :]] = block
    return visible
