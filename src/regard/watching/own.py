"""A call of regard's own attention, of any score, mask and path."""

from dataclasses import replace

import torch
from torch import Tensor

from regard.attention import dense
from regard.attention.fold import folds
from regard.attention.job import Job
from regard.masks.distance import is_plain_causal
from regard.shapes import precise
from regard.watching.asked import Asked, Dot, as_computed, four_axes


def asked_of(job: Job) -> Asked:
    """Ask a job for its weights: as a dot product where the score folds into no more than that."""
    stairs = is_plain_causal(job.mask, job.frame)
    plain = job.bias is None and (job.mask is None or stairs) and job.groups == 1
    if not (plain and folds(job.score)):
        return Own(job)
    folded = job.score.fold(precise(job.queries), precise(job.keys))  # type: ignore[attr-defined]
    queries, keys, scale, _ = folded.without_lift()
    dot = Dot(queries, keys, job.values, is_causal=stairs, scale=scale)
    dot.memory = four_axes(job.keys)  # folded keys may depend on all keys
    return dot


class Own:
    """A job whose rows are scored and weighed again, all heads together."""

    apart = False

    def __init__(self, job: Job) -> None:
        self._job = replace(
            job, queries=precise(as_computed(job.queries)), keys=precise(as_computed(job.keys))
        )
        *before, queries, keys = job.frame.shape
        heads = before[-1] if len(before) > 1 else 1
        self.sizes = (torch.Size(before).numel() // max(1, heads), heads, queries, keys)
        self.memory: Tensor | None = four_axes(job.keys)
        self.values: Tensor | None = four_axes(job.values)
        start = job.frame.offset
        self.offset = max(0, keys - queries) if start is None else start
        self.causal = self._is_causal()

    def reach(self, stop: int) -> int:
        """Count all keys: a mask tells no more."""
        return self.sizes[3]

    def weigh(self, batch: slice, heads: list[int], rows: slice) -> Tensor:
        """Compute weights (batch, head, row, key)."""
        job = self._job
        start, stop, _ = rows.indices(self.sizes[2])
        scores = dense.score(job, job.queries[..., start:stop, :])
        weights = dense.weigh(job, scores, job.frame.part(start, stop - start))
        return weights.reshape(*self.sizes[:2], *weights.shape[-2:])[batch, heads]

    def _is_causal(self) -> bool:
        """Ask the mask of two rows, the first and the middle one, whether they see ahead."""
        _, _, queries, keys = self.sizes
        if self._job.mask is None or keys <= self.offset + 1:
            return False
        return not any(
            self._job.mask.on(self._job.frame.part(row, 1))[..., self.offset + row + 1 :].any()
            for row in {0, queries // 2}
        )
