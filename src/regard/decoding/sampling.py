"""Sampling with temperature, top-k and top-p (nucleus) filters."""

from dataclasses import dataclass, replace
from math import inf

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.config import MAX_SEED
from regard.decoding.hypothesis import DEFAULT_LIMITS, Hypothesis, LengthLimits
from regard.decoding.search import BeamSearch, ShouldStop, device_of, initial_state
from regard.decoding.topk import Candidates
from regard.errors import RegardError
from regard.models import DecoderModel, DecoderState

SEED_STRIDE = 1_000_003  # between the seeds of batches; prime, so that nearby seeds do not meet


@dataclass(frozen=True, slots=True)
class SamplingConfig:
    """Settings of sampling.

    Attributes:
        temperature: divides the logits; lower values prefer probable tokens more.
        top_k: sample from this many most probable tokens only; None for all.
        top_p: sample from the most probable tokens that make up this probability (nucleus
            sampling, Holtzman et al. 2020); 1 for all.
        seed: the same seed gives the same samples; None for a random one.

    Raises:
        RegardError: if a value is out of range.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    seed: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.temperature < inf:
            raise RegardError(
                f"temperature must be above 0 and finite, but it is {self.temperature}"
            )
        if self.top_k is not None and self.top_k < 1:
            raise RegardError(f"top_k must be 1 or more, or None for all, but it is {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise RegardError(f"top_p must be above 0 and at most 1, but it is {self.top_p}")
        if self.seed is not None and not 0 <= self.seed <= MAX_SEED:
            raise RegardError(f"seed must be from 0 to {MAX_SEED}, but it is {self.seed}")

    def for_batch(self, index: int) -> "SamplingConfig":
        """Return the config of one batch, with a seed of its own, so that none repeats another."""
        if self.seed is None:
            return self
        return replace(self, seed=(self.seed + SEED_STRIDE * index) % MAX_SEED)

    def generator(self, device: torch.device) -> torch.Generator:
        """Return a random generator with the seed."""
        generator = torch.Generator(device)
        if self.seed is None:
            generator.seed()
        else:
            generator.manual_seed(self.seed)
        return generator


DEFAULT_SAMPLING = SamplingConfig()


@torch.no_grad()
def sample(
    model: DecoderModel,
    source: Int[Tensor, "batch position"] | DecoderState,
    lengths: Int[Tensor, " batch"] | None = None,
    *,
    sampling: SamplingConfig = DEFAULT_SAMPLING,
    limits: LengthLimits = DEFAULT_LIMITS,
    should_stop: ShouldStop | None = None,
) -> list[Hypothesis]:
    """Sample one output for each batch item, token by token.

    Log-probabilities of the hypotheses are the model's own, before temperature and filters.

    Args:
        model: an encoder-decoder model, or any `DecoderModel` to continue from a state.
        source: padded token ids; or the `DecoderState` to start from, as a language model needs.
        lengths: number of tokens of each source; None with a state.
        sampling: temperature, top-k, top-p and seed.
        limits: least and greatest length, and a forced prefix.
        should_stop: called before every step; the search is cancelled when it returns True.

    Returns:
        One hypothesis for each batch item.

    Raises:
        RegardError: if no hypothesis can be completed.
        DecodingCancelled: if `should_stop` returned True.

    Example:
        >>> from regard.config import ModelConfig
        >>> from regard.models import build
        >>> model = build(ModelConfig(width=32, layers=1, heads=2), vocab_sizes=(100, 100)).eval()
        >>> source, lengths = torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([3, 2])
        >>> sampling, limits = SamplingConfig(top_k=10, seed=1), LengthLimits(max_length=9)
        >>> one, two = (
        ...     sample(model, source, lengths, sampling=sampling, limits=limits) for _ in range(2)
        ... )
        >>> one == two
        True
    """
    generator = sampling.generator(device_of(model))

    def select(
        log_probs: Float[Tensor, "batch 1 token"], beam_scores: Float[Tensor, "batch 1"]
    ) -> Candidates:
        log_probs = log_probs[:, 0]
        # subtract the maximum, so that a small temperature cannot overflow
        logits = (log_probs - log_probs.amax(dim=-1, keepdim=True)) / sampling.temperature
        probs = _filter_top_k_top_p(logits, sampling.top_k, sampling.top_p).softmax(dim=-1)
        tokens = torch.multinomial(probs.nan_to_num(1.0), 1, generator=generator)
        token_log_probs = log_probs.gather(1, tokens)
        # rows with no allowed token sampled an arbitrary one, which must not be kept
        is_empty = probs.isnan().any(dim=-1, keepdim=True)
        scores = (beam_scores + token_log_probs).masked_fill(is_empty, -torch.inf)
        return Candidates(scores, torch.zeros_like(tokens), tokens, token_log_probs)

    state = initial_state(model, source, lengths, should_stop)
    search = BeamSearch(model, state, beam_size=1, limits=limits, should_stop=should_stop)
    return [hypotheses[0] for hypotheses in search.run(select)]


def _filter_top_k_top_p(
    logits: Float[Tensor, "batch token"], top_k: int | None, top_p: float
) -> Float[Tensor, "batch token"]:
    """Set logits of improbable tokens to -inf; the most probable token always stays."""
    ranked, order = logits.sort(dim=-1, descending=True)
    probs = ranked.softmax(dim=-1)
    removed = probs.cumsum(dim=-1) - probs >= top_p
    if top_k is not None:
        removed |= torch.arange(logits.shape[-1], device=logits.device) >= top_k
    removed[..., 0] = False
    return logits.masked_fill(removed.gather(-1, order.argsort(-1)), -torch.inf)
