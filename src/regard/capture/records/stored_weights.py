"""The weights of a record: in full, or summarized if they are too many."""

from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.capture.calls import CapturedCall, MaterializedWeights
from regard.capture.records.summary import join_summaries, summarize_call
from regard.trace.block_summary import TensorSummary

Keep = Literal["auto", "all", "summary"]
KEEP_CHOICES = get_args(Keep)

MAX_FULL_WEIGHTS = 2**22  # weights of one call, 16 MiB; keep="auto" summarizes larger ones


class StoredWeights:
    """Weights on the CPU, to which the queries of further calls are appended.

    Args:
        keep: in full ("all"), as summaries, or as summaries from `max_full_weights` on ("auto").
        max_full_weights: the most that "auto" keeps in full.
    """

    def __init__(self, keep: Keep = "all", max_full_weights: int = MAX_FULL_WEIGHTS) -> None:
        self._keep, self._max_full_weights = keep, max_full_weights
        self._num_weights = 0
        self._parts: list[Tensor | TensorSummary] = []  # one per call, until they are joined

    @property
    def is_summarized(self) -> bool:
        """Whether the weights were summarized rather than kept in full."""
        return any(isinstance(part, TensorSummary) for part in self._parts)

    def append(self, call: CapturedCall, heads: list[int], offset: int, num_queries: int) -> None:
        """Append the weights of a call.

        Args:
            call: the call.
            heads: of which the weights are kept.
            offset: position of the first query of the record among the keys.
            num_queries: number of queries appended before.
        """
        batch, _, queries, keys = call.shape
        self._num_weights += batch * len(heads) * queries * keys
        if self._should_summarize():
            self._summarize_parts(offset)
            self._parts.append(summarize_call(call, heads, offset + num_queries))
        else:
            self._parts.append(weights_of(call, heads))

    def replace(self, weights: Tensor) -> None:
        """Keep other weights (batch · window, head, query, key) instead, in full."""
        self._parts = [weights]

    def in_full(self, num_keys: int) -> Tensor | None:
        """Return the weights (batch · window, head, query, key); None if they were summarized."""
        if self.is_summarized:
            return None
        parts = [with_width(part, num_keys) for part in self._parts if isinstance(part, Tensor)]
        if len(parts) > 1:
            parts = [torch.cat(parts, dim=-2)]
        self._parts = [*parts]  # joined once, not at every access
        return parts[0]

    def summary(self, num_keys: int) -> TensorSummary | None:
        """Return the summary of the weights; None if they were kept in full."""
        parts = [part for part in self._parts if isinstance(part, TensorSummary)]
        return join_summaries(parts, num_keys) if parts else None

    def _should_summarize(self) -> bool:
        if self._keep == "auto":
            return self._num_weights > self._max_full_weights
        return self._keep == "summary"

    def _summarize_parts(self, offset: int) -> None:
        first = offset
        for n, part in enumerate(self._parts):
            if isinstance(part, Tensor):
                heads = list(range(part.shape[1]))
                part = self._parts[n] = summarize_call(MaterializedWeights(part), heads, first)
            first += part.top_keys.shape[2]


def weights_of(call: CapturedCall, heads: list[int]) -> Tensor:
    """Return the weights (batch · window, head, query, key) of some heads, on the CPU."""
    return with_width(call.weights(slice(None), heads, slice(None)), call.shape[3]).cpu()


def with_width(weights: Tensor, width: int) -> Tensor:
    """Return weights of that many keys, without a copy if they have them."""
    missing = width - weights.shape[-1]
    return pad(weights, (0, missing)) if missing > 0 else weights[..., :width]
