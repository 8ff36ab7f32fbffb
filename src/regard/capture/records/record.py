"""The record of one attention call and of the calls that continue it."""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from regard.capture.calls import QueryKeyVectors
from regard.capture.layout import PLAIN_AXES, CallAxes
from regard.capture.records.stored_weights import StoredWeights
from regard.trace import TOP_KEYS, Kind
from regard.trace.block_summary import TensorSummary

_ROUNDING = 1e-2  # of the sum of a row of weights, also in half precision


@dataclass(slots=True)
class CapturedAttention:
    """The attention of one module in one call, or in all steps of one generation.

    Generation with a KV cache calls attention once per token. Such steps continue the keys of the
    call before them and are appended to one record, which then equals that of a single pass over
    the whole text.
    """

    name: str  # of the module
    call_site: str  # file:line
    call: int  # how many records of this module and line there were before
    kind: Kind
    heads: list[int]  # indices of those kept
    num_heads: int  # of the module
    offset: int = 0  # position of the first query among the keys
    extra_keys: int = 0  # keys at the end that are no positions
    axes: CallAxes = PLAIN_AXES
    keep_vectors: bool = False
    joined_axis: int = 2  # along which steps and parts were joined
    has_window_parts: bool = False  # parts of one softmax, of which one is within windows
    steps: int = 0  # number of calls that were joined
    batch_size: int = 0  # batch items · windows
    num_queries: int = 0
    num_keys: int = 0
    value_norms: Tensor | None = field(default=None, repr=False)  # (batch · window, head, key)
    vectors: QueryKeyVectors | None = field(default=None, repr=False)
    fully_masked_keys: Tensor | None = field(default=None, repr=False)  # (batch · window, key)
    stored: StoredWeights = field(default_factory=StoredWeights, repr=False)

    def __repr__(self) -> str:
        size = f"{self.num_queries} × {self.num_keys}"
        return f"<{type(self).__name__} {self.name!r}: {self.kind}, {self.num_heads} heads, {size}>"

    @property
    def weights(self) -> Tensor | None:
        """The weights (batch, head, query, key); None if they were summarized.

        Attention within windows has an axis more: (batch, window, head, query, key).
        """
        weights = self.flat_weights
        if weights is None or self.num_windows == 1:
            return weights
        windows: Tensor = weights.unflatten(0, (-1, self.num_windows))
        return windows

    @property
    def flat_weights(self) -> Tensor | None:
        """The weights (batch · window, head, query, key); None if they were summarized."""
        return self.stored.in_full(self._num_filled_keys())

    @property
    def summary(self) -> TensorSummary | None:
        """The summary of the weights; None if they were kept in full."""
        return self.stored.summary(self._num_filled_keys())

    @property
    def is_summarized(self) -> bool:
        """Whether the weights were summarized rather than kept in full."""
        return self.stored.is_summarized

    @property
    def storage(self) -> str:
        """A description of what was kept."""
        what = f"top {TOP_KEYS} keys and tiles" if self.is_summarized else "all weights"
        if len(self.heads) == self.num_heads:
            return what
        listed = ", ".join(map(str, self.heads[:6])) + (", …" if len(self.heads) > 6 else "")
        return f"heads {listed} of {self.num_heads}, {what}"

    @property
    def normaliser(self) -> str:
        """The function that made weights of scores, "softmax" in most models."""
        return self.axes.normaliser

    @property
    def applied(self) -> tuple[str, ...]:
        """Names of what was applied to the weights before they met the values."""
        return self.axes.applied

    @property
    def uncertain(self) -> tuple[str, ...]:
        """Axes whose role is a convention rather than known: "head", "window"."""
        return self.axes.uncertain

    @property
    def num_windows(self) -> int:
        """Number of windows, if attention is within windows of the positions."""
        return self.axes.num_windows

    @property
    def leading_keys(self) -> int:
        """Number of learned keys before the text's own, in self-attention that has some."""
        return self.axes.leading_keys if self.kind == "self" else 0

    @property
    def has_extra_keys(self) -> bool:
        """Whether there are keys besides the positions of a text: learned, zeros or summaries."""
        positions = self.axes.positions
        num_summaries = 0 if positions is None else positions.num_extra
        return bool(self.extra_keys or self.leading_keys or num_summaries)

    @property
    def row_sums(self) -> Tensor:
        """Sum of the weights of each query, (batch · window, head, query)."""
        if (summary := self.summary) is not None:
            return summary.top_weights.sum(-1) + summary.remainder
        weights = self.flat_weights
        assert weights is not None, "kept in full"
        return weights.sum(-1, dtype=torch.promote_types(weights.dtype, torch.float32))

    @property
    def is_partial(self) -> bool:
        """Whether some keys of the softmax are missing, so that rows sum to less than 1.

        Their weights are those of another record, of a sink, or were not followed. Rows of zeros
        are those of queries that are masked. What was applied to weights may change their sum: then
        it is known from the number of keys of the softmax, unless those that are there were
        normalised again.
        """
        if self.normaliser != "softmax" or "renormalise" in self.applied:
            return False
        if self.applied:
            return self.num_keys < self.axes.num_normalised_keys
        sums = self.row_sums
        return bool(((sums > _ROUNDING) & (sums < 1 - _ROUNDING)).any())

    def with_weights(
        self, weights: Tensor, value_norms: Tensor | None = None, extra_keys: int = 0
    ) -> "CapturedAttention":
        """Return a record of the same module with other weights (batch, head, query, key)."""
        stored = StoredWeights()
        stored.replace(weights)
        return replace(
            self,
            axes=PLAIN_AXES,
            offset=0,
            extra_keys=extra_keys,
            batch_size=weights.shape[0],
            num_queries=weights.shape[2],
            num_keys=weights.shape[3],
            value_norms=value_norms,
            fully_masked_keys=None,
            vectors=None,
            stored=stored,
        )

    def _num_filled_keys(self) -> int:
        """Return the number of keys; of a static cache, only those that have been filled."""
        if self.kind != "causal":
            return self.num_keys
        return min(self.num_keys, self.offset + self.num_queries + self.extra_keys)
