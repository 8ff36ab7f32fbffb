"""Sampling with temperature, top-k and top-p (nucleus) filters."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from numbers import Integral, Real

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard._support.torch_modes import has_float64
from regard.config import MAX_SEED
from regard.decoding.hypothesis import DEFAULT_LIMITS, Hypothesis, LengthLimits
from regard.decoding.prefix import AllowedTokens
from regard.decoding.search import BeamSearch, ShouldStop, device_of, initial_state
from regard.decoding.topk import Candidates
from regard.errors import RegardError, wrong_type
from regard.models import DecoderModel, DecoderState

SEED_STRIDE = 1_000_003  # between the seeds of sentences; prime, so that nearby seeds do not meet
STEPS_PER_DRAW = 64  # whose random numbers are drawn at a time


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
        TypeError: if `top_k` or `seed` is not an integer, or another value is no number.

    Example:
        >>> SamplingConfig(temperature=0.7, top_p=0.9, seed=1).top_k is None
        True
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    seed: int | None = None

    def __post_init__(self) -> None:
        for name, number in (("temperature", self.temperature), ("top_p", self.top_p)):
            if not isinstance(number, Real) or isinstance(number, bool):
                raise wrong_type(name, "a number", number)
        if not 0 < self.temperature < inf:
            raise RegardError(
                f"temperature must be above 0 and finite, but it is {self.temperature}"
            )
        for name, value in (("top_k", self.top_k), ("seed", self.seed)):
            if value is not None and not isinstance(value, Integral):
                raise wrong_type(name, "an integer or None", value)
        if self.top_k is not None and self.top_k < 1:
            raise RegardError(f"top_k must be 1 or more, or None for all, but it is {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise RegardError(f"top_p must be above 0 and at most 1, but it is {self.top_p}")
        if self.seed is not None and not 0 <= self.seed <= MAX_SEED:
            raise RegardError(f"seed must be from 0 to {MAX_SEED}, but it is {self.seed}")

    def generators(self, numbers: Sequence[int]) -> list[torch.Generator]:
        """Return a random generator for each batch item.

        Args:
            numbers: number of each batch item among all that are sampled with this seed. Its random
                numbers follow from seed and number alone, whichever batch it is in.
        """
        seed = torch.Generator().seed() if self.seed is None else self.seed
        seeds = [(seed + SEED_STRIDE * number) % MAX_SEED for number in numbers]
        return [torch.Generator().manual_seed(own) for own in seeds]


class _Uniforms:
    """Random numbers from [0, 1): one for each batch item and step."""

    def __init__(self, generators: Sequence[torch.Generator], device: torch.device) -> None:
        self._generators, self._device = generators, device
        self._block, self._first = torch.empty(len(generators), 0, device=device), 0

    def __call__(self, items: Int[Tensor, " item"], step: int) -> Float[Tensor, " item"]:
        """Return those of some batch items; steps must not descend."""
        while step >= self._first + self._block.shape[1]:
            self._first += self._block.shape[1]
            rows = [
                torch.rand(STEPS_PER_DRAW, generator=own, device="cpu") for own in self._generators
            ]
            self._block = torch.stack(rows).to(self._device)
        return self._block[items, step - self._first]


DEFAULT_SAMPLING = SamplingConfig()


@torch.no_grad()
def sample(
    model: DecoderModel,
    source: Int[Tensor, "batch position"] | DecoderState,
    lengths: Int[Tensor, " batch"] | None = None,
    *,
    sampling: SamplingConfig = DEFAULT_SAMPLING,
    limits: LengthLimits = DEFAULT_LIMITS,
    allowed_tokens: AllowedTokens | None = None,
    numbers: Sequence[int] | None = None,
    should_stop: ShouldStop | None = None,
) -> list[Hypothesis]:
    """Sample one output for each batch item, token by token.

    Log-probabilities of the hypotheses are the model's own, before temperature and filters.

    Args:
        model: an encoder-decoder model, or any `DecoderModel` to continue from a state.
        source: padded token ids; or the `DecoderState` to start from, as a language model needs.
        lengths: number of tokens of each source; None counts those that are not padding.
        sampling: temperature, top-k, top-p and seed.
        limits: least and greatest length, and a forced prefix.
        allowed_tokens: returns which tokens may come next, such as `TextPrefixes`; see
            `AllowedTokens`.
        numbers: numbers of the batch items among all that are sampled with this seed, so that
            batches do not repeat each other's random numbers; by default they count from 0.
        should_stop: called before every step; the search is cancelled when it returns True.

    Returns:
        One hypothesis for each batch item.

    Raises:
        RegardError: if no hypothesis can be completed.
        DecodingCancelled: if `should_stop` returned True.

    Example:
        >>> from regard.config import ModelConfig
        >>> from regard.models import build
        >>> model = build(ModelConfig(width=32, layers=1, heads=2), vocab_size=100).eval()
        >>> source, lengths = torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([3, 2])
        >>> sampling, limits = SamplingConfig(top_k=10, seed=1), LengthLimits(max_length=9)
        >>> one, two = (
        ...     sample(model, source, lengths, sampling=sampling, limits=limits) for _ in range(2)
        ... )
        >>> one == two
        True
    """
    state = initial_state(model, source, lengths, should_stop)
    search = BeamSearch(
        model,
        state,
        beam_size=1,
        limits=limits,
        allowed_tokens=allowed_tokens,
        should_stop=should_stop,
    )
    numbers = range(state.batch_size) if numbers is None else numbers
    uniforms = _Uniforms(sampling.generators(numbers), device_of(model))
    start = 0  # of the next chunk of active batch items

    def select(
        log_probs: Float[Tensor, "batch 1 token"], beam_scores: Float[Tensor, "batch 1"]
    ) -> Candidates:
        nonlocal start
        items = search.active[start : start + len(log_probs)]
        start = (start + len(log_probs)) % len(search.active)
        log_probs = log_probs[:, 0]
        # subtract the maximum, so that a small temperature cannot overflow
        logits = (log_probs - log_probs.amax(dim=-1, keepdim=True)) / sampling.temperature
        probs = _filter_top_k_top_p(logits, sampling.top_k, sampling.top_p).softmax(dim=-1)
        tokens = _inverse_cdf(probs.nan_to_num(1.0), uniforms(items, search.tokens.shape[-1] - 1))
        token_log_probs = log_probs.gather(1, tokens)
        # rows with no allowed token sampled an arbitrary one, which must not be kept
        is_empty = probs.isnan().any(dim=-1, keepdim=True)
        scores = (beam_scores + token_log_probs).masked_fill(is_empty, -torch.inf)
        return Candidates(scores, torch.zeros_like(tokens), tokens, token_log_probs)

    return [hypotheses[0] for hypotheses in search.run(select)]


def _inverse_cdf(
    probs: Float[Tensor, "batch token"], uniforms: Float[Tensor, " batch"]
) -> Int[Tensor, "batch 1"]:
    """Return the first token of each row at which the cumulative probability exceeds a number."""
    if not has_float64(probs.device):
        return _inverse_cdf(probs.cpu(), uniforms.cpu()).to(probs.device)
    cumulative = probs.double().cumsum(dim=-1)
    # a product below the sum, also when rounded: the token's own probability is above 0
    thresholds = uniforms.double()[:, None] * cumulative[:, -1:]
    return torch.searchsorted(cumulative, thresholds, right=True)


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
