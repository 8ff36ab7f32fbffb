"""A call of regard's own attention, of any score, mask and path."""

from dataclasses import replace

import torch
from torch import Tensor

from regard._support.precision import upcast
from regard.attention.backends import dense
from regard.attention.call import AttentionCall
from regard.attention.scores.base import DotProductForm, folds
from regard.capture.calls.base import Asked, Dot, as_computed, four_axes
from regard.capture.mask_analysis import climbs, may_look, seen_by_some
from regard.capture.traceless import traceless
from regard.masks.positional import is_plain_causal
from regard.masks.shape import AttentionShape


def asked_of(job: AttentionCall) -> Asked:
    """Ask a job for its weights: as a dot product where the score folds into no more than that."""
    stairs = is_plain_causal(job.mask, job.shape)
    plain = job.bias is None and (job.mask is None or stairs) and job.groups == 1
    if not (plain and folds(job.score)):
        return Own(job)
    given = upcast(job.queries), upcast(job.keys)
    folded = DotProductForm(*job.score.fold(*given))  # type: ignore[attr-defined]
    queries, keys, scale, _ = folded.absorb_key_bias()
    dot = Dot(queries, keys, job.values, is_causal=stairs, scale=scale)
    dot.memory = four_axes(job.keys)  # folded keys may depend on all keys
    return dot


class Own:
    """A job whose rows are scored and weighed again, all heads together."""

    apart, added = False, 0

    def __init__(self, job: AttentionCall) -> None:
        self._job = replace(
            job, queries=upcast(as_computed(job.queries)), keys=upcast(as_computed(job.keys))
        )
        *before, queries, keys = job.shape.score_shape
        heads = before[-1] if len(before) > 1 else 1
        self.sizes = (torch.Size(before).numel() // max(1, heads), heads, queries, keys)
        self.memory: Tensor | None = four_axes(job.keys)
        self.values: Tensor | None = four_axes(job.values)
        start = job.shape.offset
        self.offset = max(0, keys - queries) if start is None else start
        self.causal = self._is_causal()

    def reach(self, stop: int) -> int:
        """Count all keys: a mask tells no more."""
        return self.sizes[3]

    def weigh(self, batch: slice, heads: list[int], rows: slice) -> Tensor:
        """Compute weights (batch, head, row, key)."""
        job = replace(self._job, score=traceless(self._job.score))  # as it was before every block
        start, stop, _ = rows.indices(self.sizes[2])
        scores = dense.score(job, job.queries[..., start:stop, :])
        weights = dense.weigh(job, scores, job.shape.with_rows(start, stop - start))
        return weights.reshape(*self.sizes[:2], *weights.shape[-2:])[batch, heads]

    def hidden(self) -> Tensor | None:
        """Tell which keys (batch, key) mask and bias hide from everyone; None without both."""
        frame, (batch, heads, queries, keys) = self._job.shape, self.sizes
        if self._job.mask is None and self._job.bias is None:
            return None

        def seen(start: int, stop: int) -> Tensor:
            may = self._may_look(frame.with_rows(start, stop - start)).any(-2)
            return may.expand(*frame.batch, keys).reshape(batch, heads, keys).any(1)

        return ~seen_by_some(seen, queries)

    def _may_look(self, frame: AttentionShape) -> Tensor:
        may = torch.ones(1, frame.keys, dtype=torch.bool, device=frame.device)
        if self._job.mask is not None:
            may = may & self._job.mask.materialize(frame)
        if self._job.bias is not None:
            may = may & may_look(frame.slice_rows(self._job.bias))
        return may

    def _is_causal(self) -> bool:
        mask, frame = self._job.mask, self._job.shape
        if mask is None:
            return False

        def sees(row: int, key: int) -> bool:
            return bool(mask.materialize(frame.with_rows(row, 1))[..., key:].any())

        return climbs(sees, *self.sizes[2:], self.offset)
