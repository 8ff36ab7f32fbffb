"""The best of very many continuations: the best groups first, then the best of their members."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

GROUP = 64  # tokens; to find the highest of each group is one fast pass


class Candidates(NamedTuple):
    """Continuations of each sentence, best first: (sentence, rank)."""

    totals: Tensor  # log probabilities
    parents: Tensor  # which continuation they go on from
    tokens: Tensor


def best(
    scores: Float[Tensor, "sentence beam token"],
    likely: Float[Tensor, "sentence beam"],
    count: int,
) -> Candidates:
    """Rank the continuations of each sentence by likely + score, and give the first `count`.

    What is among the first is in a group whose highest is among the first of all groups' highest,
    so only as many groups are sorted. The sum is not written out for all continuations, either.
    """
    tokens = scores.shape[-1]
    numbers = _worth_ranking(scores, likely, count)
    totals = scores.flatten(1).gather(1, numbers) + likely.gather(1, numbers // tokens)
    ranked, places = totals.topk(min(count, totals.shape[1]), dim=1)
    numbers = numbers.gather(1, places)
    return Candidates(ranked, numbers // tokens, numbers % tokens)


def _worth_ranking(scores: Tensor, likely: Tensor, count: int) -> Int[Tensor, "sentence some"]:
    """Number the members of the best groups, beam × tokens + token, and what fills no group."""
    sentences, beams, tokens = scores.shape
    numbers = torch.arange(beams * tokens, device=scores.device).view(beams, tokens)
    groups, left = divmod(tokens, GROUP)
    grouped = scores[..., : tokens - left].unflatten(-1, (groups, GROUP))
    highest = (grouped.amax(dim=-1) + likely[..., None]).flatten(1)
    chosen = highest.topk(min(count, beams * groups), dim=1).indices
    members = numbers[:, : tokens - left].reshape(-1, GROUP)[chosen].flatten(1)
    others = numbers[:, tokens - left :].flatten().expand(sentences, -1)
    return torch.cat([members, others], dim=1)
