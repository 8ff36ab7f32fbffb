"""Attention in three plain steps: score, weigh, gather."""

import torch
from torch import Tensor
from torch.nn.functional import dropout as drop

from regard._support.functorch import in_functorch
from regard._support.precision import no_autocast, upcast
from regard.attention.call import AttentionCall, stack_groups, unstack_groups
from regard.attention.scores.base import DotProductForm, folds
from regard.attention.scores.dot import dots
from regard.masks.shape import AttentionShape, broadcasts
from regard.shapes import Context, Scores, Weights


def attend(job: AttentionCall, dropout: float) -> Context:
    """Gather the values by the weights of all pairs at once."""
    return gather(job, weights(job), dropout)


def weights(job: AttentionCall) -> Weights:
    """Score all pairs and weigh them."""
    return weigh(job, score(job, job.queries), job.shape)


def score(job: AttentionCall, queries: Tensor) -> Scores:
    """Compare some of the job's queries with all its keys."""
    rows = stack_groups(queries, job.groups)
    if in_functorch() and folds(job.score):
        scores = _through_fold(job, rows)
    else:
        scores = _fitting(job.score(rows, job.keys), (*rows.shape[:-1], job.keys.shape[-2]))
    return unstack_groups(upcast(scores), job.groups)  # a caller's function may give half precision


def _through_fold(job: AttentionCall, queries: Tensor) -> Scores:
    """Compare by the dot product that a score folds into, which has every derivative.

    What it leaves out is the same for all keys, so softmax does not see it.
    """
    folded = DotProductForm(*job.score.fold(queries, job.keys))  # type: ignore[attr-defined]
    scores = folded.scale * dots(folded.queries, folded.keys)
    return scores if folded.key_bias is None else scores + folded.key_bias[..., None, :]


def _fitting(scores: Tensor, wanted: tuple[int, ...]) -> Tensor:
    """Stretch axes of size one; refuse what is no score for each query and key."""
    if scores.shape == wanted:
        return scores
    if not (scores.ndim == len(wanted) and broadcasts(tuple(scores.shape), wanted)):
        raise ValueError(
            f"score must give a number for each query and key, {wanted}, where heads that share "
            f"keys are below each other, but the shape is {tuple(scores.shape)}"
        )
    return scores.expand(wanted).contiguous()  # which may be written over


def weigh(job: AttentionCall, scores: Scores, frame: AttentionShape) -> Weights:
    """Turn scores into looks: each row sums to one, and a row that may look nowhere is zeros."""
    if job.bias is not None:
        scores = scores + frame.slice_rows(job.bias).to(scores.dtype)
    if job.mask is not None:
        scores = scores.masked_fill(~job.mask.materialize(frame), -torch.inf)
    if scores.shape[-1] == 0 or is_plain(job):
        # such scores are nobody else's, so they may be written over where no gradient needs them
        learning = job.needs_grad() or scores.requires_grad
        return torch.softmax(scores, dim=-1, out=None if learning else scores)
    # softmax of nothing but -inf is NaN, in the gradient too; such a row must read as "no look"
    nowhere = scores.amax(dim=-1, keepdim=True) == -torch.inf
    return scores.masked_fill(nowhere, 0.0).softmax(dim=-1).masked_fill(nowhere, 0.0)


def gather(job: AttentionCall, weights: Weights, dropout: float) -> Context:
    """Mix the values by their weights, some of the weights dropped."""
    weights = stack_groups(drop(weights, dropout) if dropout else weights, job.groups)
    with no_autocast(weights):
        context = torch.einsum("...qk,...kv->...qv", weights, upcast(job.values))
    return unstack_groups(context, job.groups).to(job.values.dtype)


def is_plain(job: AttentionCall) -> bool:
    """Tell whether no score can be -inf: nothing is hidden or added to a dot product."""
    return job.mask is None and job.bias is None and folds(job.score)
