"""Two-stage top-k over all beams and tokens: the best groups first, then their best tokens."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

GROUP_SIZE = 64  # tokens; the maximum of every group takes one fast pass


class Candidates(NamedTuple):
    """Continuations of the beams of each batch item, best first."""

    scores: Float[Tensor, "batch rank"]  # log-probabilities of the beams, the token included
    beam_indices: Int[Tensor, "batch rank"]  # the beam that is continued, within its batch item
    tokens: Int[Tensor, "batch rank"]
    token_log_probs: Float[Tensor, "batch rank"]  # of the tokens alone


def grouped_topk(
    log_probs: Float[Tensor, "batch beam token"],
    beam_scores: Float[Tensor, "batch beam"],
    k: int,
) -> Candidates:
    """Return the k best continuations of each batch item by beam_scores + log_probs.

    A continuation among the k best is in a group whose maximum is among the k best maxima, so only
    k groups are sorted, and the sum is never computed for the whole vocabulary.
    """
    vocab_size = log_probs.shape[-1]
    indices = _candidate_indices(log_probs, beam_scores, k)
    token_log_probs = log_probs.flatten(1).gather(1, indices)
    scores = token_log_probs + beam_scores.gather(1, indices // vocab_size)
    scores, order = scores.topk(min(k, scores.shape[1]), dim=1)
    indices = indices.gather(1, order)
    return Candidates(
        scores, indices // vocab_size, indices % vocab_size, token_log_probs.gather(1, order)
    )


def _candidate_indices(
    log_probs: Tensor, beam_scores: Tensor, k: int
) -> Int[Tensor, "batch candidate"]:
    """Return the indices, beam × vocab_size + token, of the best groups and of the remainder."""
    batch_size, beam_size, vocab_size = log_probs.shape
    indices = torch.arange(beam_size * vocab_size, device=log_probs.device)
    indices = indices.view(beam_size, vocab_size)
    groups, remainder = divmod(vocab_size, GROUP_SIZE)
    grouped = log_probs[..., : vocab_size - remainder].unflatten(-1, (groups, GROUP_SIZE))
    maxima = (grouped.amax(dim=-1) + beam_scores[..., None]).flatten(1)
    best = maxima.topk(min(k, beam_size * groups), dim=1).indices
    members = indices[:, : vocab_size - remainder].reshape(-1, GROUP_SIZE)[best].flatten(1)
    others = indices[:, vocab_size - remainder :].flatten().expand(batch_size, -1)
    return torch.cat([members, others], dim=1)
