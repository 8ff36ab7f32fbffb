"""How a model speaks: greedy, beam and sampling, for any model that can take a step."""

from functools import partial
from math import inf

import torch
from torch import Tensor

from regard.config import MAX_LENGTH_PENALTY
from regard.decoding.beam_search import BeamSearch, device_of
from regard.decoding.beam_search import Hypothesis as Hypothesis
from regard.decoding.beam_search import LengthLimits as LengthLimits
from regard.decoding.topk import Candidates, best
from regard.models.protocols import DecoderModel, Past

NO_LIMITS = LengthLimits()


def greedy(
    model: DecoderModel, past: Past, sentences: int, limits: LengthLimits = NO_LIMITS
) -> list[Hypothesis]:
    """Take the likeliest token at each step."""
    return [texts[0] for texts in beam(model, past, sentences, beams=1, limits=limits)]


@torch.no_grad()
def beam(
    model: DecoderModel,
    past: Past,
    sentences: int,
    *,
    beams: int = 5,
    nbest: int = 1,
    penalty: float = 1.0,
    limits: LengthLimits = NO_LIMITS,
) -> list[list[Hypothesis]]:
    """Keep the `beams` likeliest beginnings of each sentence, until as many have ended.

    Args:
        nbest: how many texts to give for each sentence, best first; fewer if limits leave fewer.
        penalty: the power of the length by which log probabilities are divided.
    """
    if not abs(penalty) <= MAX_LENGTH_PENALTY:
        raise ValueError(
            f"penalty must be from -{MAX_LENGTH_PENALTY} to {MAX_LENGTH_PENALTY}, "
            f"but it is {penalty}"
        )
    if beams < 1:
        raise ValueError(f"beams must be 1 or more, but it is {beams}; 1 is greedy")
    if not 1 <= nbest <= beams:
        raise ValueError(f"nbest must be from 1 to beams ({beams}), but it is {nbest}")

    # twice as many as beams, since half of them may have ended
    choose = partial(best, count=2 * beams)
    found = BeamSearch(model, past, sentences, beams, penalty, limits).run(choose)
    return [sorted(texts, key=lambda text: -text.score)[:nbest] for texts in found]


@torch.no_grad()
def sample(
    model: DecoderModel,
    past: Past,
    sentences: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    seed: int | None = None,
    limits: LengthLimits = NO_LIMITS,
) -> list[Hypothesis]:
    """Draw each token by chance: from the likeliest `top_k`, or those that make up `top_p`.

    A lower temperature prefers likely tokens more. The same seed draws the same texts.
    """
    if not 0 < temperature < inf:
        raise ValueError(f"temperature must be above 0 and finite, but it is {temperature}")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k must be 1 or more, or None for all, but it is {top_k}")
    if not 0 < top_p <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1, but it is {top_p}")
    chance = torch.Generator(device_of(model))
    if seed is None:
        chance.seed()
    else:
        chance.manual_seed(seed)

    def draw(logits: Tensor, likely: Tensor) -> Candidates:
        below = logits[:, 0] - logits[:, 0].amax(dim=-1, keepdim=True)  # which no division ruins
        shares = _trimmed(below / temperature, top_k, top_p).softmax(dim=-1)
        token = torch.multinomial(shares.nan_to_num(1.0), 1, generator=chance)
        totals = likely + logits[:, 0].gather(1, token)
        # who has nothing to say drew anything, which must not be kept
        totals = totals.masked_fill(shares.isnan().any(dim=-1, keepdim=True), -torch.inf)
        return Candidates(totals, torch.zeros_like(token), token)

    hunt = BeamSearch(model, past, sentences, beams=1, penalty=1.0, limits=limits)
    return [texts[0] for texts in hunt.run(draw)]


def _trimmed(logits: Tensor, top_k: int | None, top_p: float) -> Tensor:
    """Rule tokens out that are not among the likeliest; the likeliest one always stays."""
    ranked, order = logits.sort(dim=-1, descending=True)
    shares = ranked.softmax(dim=-1)
    out = shares.cumsum(dim=-1) - shares >= top_p
    if top_k is not None:
        out |= torch.arange(logits.shape[-1], device=logits.device) >= top_k
    out[..., 0] = False
    return logits.masked_fill(out.gather(-1, order.argsort(-1)), -torch.inf)
