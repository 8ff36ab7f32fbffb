"""Beam search, and greedy search as a beam of one."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard._support.arguments import to_integer
from regard.config import MAX_LENGTH_PENALTY
from regard.data import BOS, EOS, PAD
from regard.decoding.hypothesis import DEFAULT_LIMITS, DecodingCancelled, Hypothesis, LengthLimits
from regard.decoding.prefix import AllowedTokens
from regard.decoding.topk import Candidates, grouped_topk
from regard.errors import RegardError, wrong_type
from regard.models import DecoderModel, DecoderState, Seq2SeqModel

ROWS_PER_CHUNK = 128  # beams whose logits are computed at a time: fills the kernels, little memory

Select = Callable[[Tensor, Tensor], Candidates]
"""Choose continuations, from log-probabilities (batch, beam, token) and scores (batch, beam)."""

ShouldStop = Callable[[], bool]


@torch.no_grad()
def beam_search(
    model: DecoderModel,
    source: Int[Tensor, "batch position"] | DecoderState,
    lengths: Int[Tensor, " batch"] | None = None,
    *,
    beam_size: int = 5,
    n_best: int = 1,
    length_penalty: float = 1.0,
    limits: LengthLimits = DEFAULT_LIMITS,
    allowed_tokens: AllowedTokens | None = None,
    should_stop: ShouldStop | None = None,
) -> list[list[Hypothesis]]:
    """Decode with beam search, until each batch item has `beam_size` finished hypotheses.

    Args:
        model: an encoder-decoder model, or any `DecoderModel` to continue from a state.
        source: padded token ids; or the `DecoderState` to start from, as a language model needs.
        lengths: number of tokens of each source; None counts those that are not padding.
        beam_size: number of beams; 1 is greedy search.
        n_best: number of hypotheses to return for each batch item.
        length_penalty: power of the length by which log-probabilities are divided; 0 ranks by
            log-probability alone, and larger values favour longer outputs.
        limits: least and greatest length, and a forced prefix.
        allowed_tokens: returns which tokens may come next, such as `TextPrefixes`; see
            `AllowedTokens`.
        should_stop: called before every step; the search is cancelled when it returns True.

    Returns:
        The hypotheses of each batch item, best first; fewer than `n_best` if the limits leave
        fewer.

    Raises:
        RegardError: if an argument is out of range, or no hypothesis can be completed.
        TypeError: if `beam_size` or `n_best` is not an integer.
        DecodingCancelled: if `should_stop` returned True.

    Example:
        >>> from regard.config import ModelConfig
        >>> from regard.models import build
        >>> model = build(ModelConfig(width=32, layers=1, heads=2), vocab_size=100).eval()
        >>> source, lengths = torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([3, 2])
        >>> limits = LengthLimits(max_length=9)
        >>> hypotheses = beam_search(model, source, lengths, beam_size=4, n_best=2, limits=limits)
        >>> [len(best_first) for best_first in hypotheses]
        [2, 2]
    """
    beam_size, n_best = to_integer("beam_size", beam_size), to_integer("n_best", n_best)
    if beam_size < 1:
        raise RegardError(f"beam_size must be 1 or more, but it is {beam_size}; 1 is greedy")
    if not 1 <= n_best <= beam_size:
        raise RegardError(f"n_best must be from 1 to beam_size ({beam_size}), but it is {n_best}")
    if not abs(length_penalty) <= MAX_LENGTH_PENALTY:
        raise RegardError(
            f"length_penalty must be from -{MAX_LENGTH_PENALTY} to {MAX_LENGTH_PENALTY}, "
            f"but it is {length_penalty}"
        )
    state = initial_state(model, source, lengths, should_stop)
    search = BeamSearch(
        model,
        state,
        beam_size=beam_size,
        length_penalty=length_penalty,
        limits=limits,
        allowed_tokens=allowed_tokens,
        should_stop=should_stop,
    )
    # twice as many candidates as beams, since half of them may have ended
    finished = search.run(partial(grouped_topk, k=2 * beam_size))
    return [sorted(some, key=lambda hypothesis: -hypothesis.score)[:n_best] for some in finished]


def greedy_search(
    model: DecoderModel,
    source: Int[Tensor, "batch position"] | DecoderState,
    lengths: Int[Tensor, " batch"] | None = None,
    *,
    limits: LengthLimits = DEFAULT_LIMITS,
    should_stop: ShouldStop | None = None,
) -> list[Hypothesis]:
    """Decode with greedy search: take the most probable token at every step.

    Args:
        model: an encoder-decoder model, or any `DecoderModel` to continue from a state.
        source: padded token ids; or the `DecoderState` to start from, as a language model needs.
        lengths: number of tokens of each source; None counts those that are not padding.
        limits: least and greatest length, and a forced prefix.
        should_stop: called before every step; the search is cancelled when it returns True.

    Returns:
        One hypothesis for each batch item.

    Raises:
        RegardError: if no hypothesis can be completed.
        DecodingCancelled: if `should_stop` returned True.

    Example:
        >>> from regard.config import ModelConfig
        >>> from regard.models import build_language_model
        >>> model = build_language_model(ModelConfig(width=32, layers=1, heads=2), 100).eval()
        >>> limits = LengthLimits(max_length=9, prefix=(5, 6))
        >>> (hypothesis,) = greedy_search(model, model.init_state(), limits=limits)
        >>> hypothesis.tokens[:2]
        (5, 6)
    """
    results = beam_search(
        model, source, lengths, beam_size=1, limits=limits, should_stop=should_stop
    )
    return [hypotheses[0] for hypotheses in results]


class BeamSearch:
    """A beam search in progress; batch items leave it when they have enough hypotheses.

    Sampling is a search with one beam and another way to select continuations.
    """

    def __init__(
        self,
        model: DecoderModel,
        state: DecoderState,
        *,
        beam_size: int,
        length_penalty: float = 1.0,
        limits: LengthLimits = DEFAULT_LIMITS,
        allowed_tokens: AllowedTokens | None = None,
        should_stop: ShouldStop | None = None,
        rows_per_chunk: int = ROWS_PER_CHUNK,
    ) -> None:
        batch_size, device = state.batch_size, device_of(model)
        self.model = model
        self.state = state
        self.beam_size = beam_size
        self.length_penalty = length_penalty
        self.limits = limits
        self.allowed_tokens = allowed_tokens
        self.should_stop = should_stop
        self.rows_per_chunk = rows_per_chunk
        self.active = torch.arange(batch_size, device=device)  # batch items still searched
        self.tokens = torch.full((batch_size, 1, 1), BOS, device=device)  # (active, beam, length)
        self.token_log_probs = torch.zeros(batch_size, 1, 0, device=device)  # one fewer: no BOS
        self.beam_scores = torch.zeros(batch_size, 1, device=device)  # sums of the above
        self.finished: list[list[Hypothesis]] = [[] for _ in range(batch_size)]
        self.log_prob_buffer: Tensor | None = None

    def run(self, select: Select) -> list[list[Hypothesis]]:
        """Decode until every batch item has `beam_size` finished hypotheses."""
        self._force_prefix()
        for length in range(len(self.limits.prefix), self.limits.max_length + 1):
            if not len(self.active):
                break
            candidates = self._select(select, length)
            self._collect_finished(candidates)
            self._advance(candidates)
        for item, hypotheses in enumerate(self.finished):
            if not hypotheses:
                raise RegardError(
                    f"batch item {item} (counted from 0) has no hypothesis: the model's logits "
                    "are NaN, as after a training that diverged, or the length limits allow no "
                    "token; use sound parameters or wider limits"
                )
        return self.finished

    def _force_prefix(self) -> None:
        """Decode the prefix, the same for all batch items."""
        for token in self.limits.prefix if len(self.active) else ():
            chunks = [_log_prob_of(token, log_probs) for log_probs, _ in self._log_probs()]
            token_log_probs = torch.cat(chunks)
            self.beam_scores = self.beam_scores + token_log_probs
            self._append(torch.full_like(self.tokens[..., 0], token), token_log_probs)

    def _select(self, select: Select, length: int) -> Candidates:
        """Select the continuations of all beams that may come next."""
        chunks, start = [], 0
        for log_probs, beam_scores in self._log_probs():
            rows = slice(start, start + len(log_probs))
            chunks.append(select(self._mask_forbidden(log_probs, length, rows), beam_scores))
            start = rows.stop
        return Candidates(*map(torch.cat, zip(*chunks, strict=True)))

    def _log_probs(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Decode one step; yield log-probabilities (batch, beam, token) and scores (batch, beam).

        They come in chunks of batch items and in a buffer that the next chunk overwrites, so that
        the log-probabilities of the whole batch never exist at once.
        """
        if self.should_stop is not None and self.should_stop():
            raise DecodingCancelled
        states, self.state = self.model.step(self.tokens[..., -1], self.state)
        size = max(self.rows_per_chunk // states.shape[1], 1)
        for chunk, scores in zip(states.split(size), self.beam_scores.split(size), strict=True):
            logits = self.model.logits(chunk).float()
            # not in place, since the logits may belong to the model
            log_probs = torch.log_softmax(logits, dim=-1, out=self._buffer_for(logits))
            is_nan = log_probs[..., :1].isnan()  # of a beam, all are NaN or none
            if is_nan.any():
                log_probs.masked_fill_(is_nan, -torch.inf)  # or NaN would win over sound beams
            yield log_probs, scores

    def _buffer_for(self, logits: Tensor) -> Tensor:
        """Return the buffer that all steps share, in the shape of the logits.

        Megabytes that are allocated and freed at every step are mapped again by the system, page
        by page, which takes as long as computing them.
        """
        if self.log_prob_buffer is None or self.log_prob_buffer.numel() < logits.numel():
            self.log_prob_buffer = torch.empty_like(logits).flatten()
        return self.log_prob_buffer[: logits.numel()].view(logits.shape)

    def _mask_forbidden(self, log_probs: Tensor, length: int, rows: slice) -> Tensor:
        """Set the log-probability of tokens that may not come next to -inf, in place.

        Args:
            log_probs: of some active batch items.
            length: number of tokens so far.
            rows: which of the active batch items they are.
        """
        for token in (PAD, BOS):
            log_probs[..., token] = -torch.inf
        if length < self.limits.min_length:
            log_probs[..., EOS] = -torch.inf
        if length == self.limits.max_length:
            log_probs[..., EOS + 1 :] = -torch.inf
        if self.allowed_tokens is not None:
            allowed = self.allowed_tokens(self.active[rows], self.tokens[rows, :, 1:])
            if allowed is not None:
                log_probs.masked_fill_(~allowed, -torch.inf)
        return log_probs

    def _collect_finished(self, candidates: Candidates) -> None:
        """Keep hypotheses that ended among the `beam_size` best candidates.

        All of a step are kept, even if they are more than enough: the last of them may be better
        than hypotheses that ended earlier.
        """
        scores, beams, tokens, log_probs = (some[:, : self.beam_size] for some in candidates)
        items, ranks = ((tokens == EOS) & scores.isfinite()).nonzero(as_tuple=True)
        beams = beams[items, ranks]
        all_log_probs = torch.cat(
            [self.token_log_probs[items, beams], log_probs[items, ranks][:, None]], dim=1
        )
        for item, text, log_prob, token_log_probs in zip(
            self.active[items].tolist(),
            self.tokens[items, beams, 1:].tolist(),
            scores[items, ranks].tolist(),
            all_log_probs.tolist(),
            strict=True,
        ):
            score = log_prob / (len(text) + 1) ** self.length_penalty
            self.finished[item].append(
                Hypothesis(tuple(text), log_prob, tuple(token_log_probs), score)
            )

    def _advance(self, candidates: Candidates) -> None:
        """Continue with the best candidates that did not end, of items that need more."""
        active = self.active.tolist()
        unfinished = [
            row for row, item in enumerate(active) if len(self.finished[item]) < self.beam_size
        ]
        rows = torch.tensor(unfinished, dtype=torch.long, device=self.active.device)
        scores, beams, tokens, log_probs = (some[rows] for some in candidates)
        scores = scores.masked_fill(tokens == EOS, -torch.inf)
        self.beam_scores, order = scores.topk(min(self.beam_size, scores.shape[1]), dim=1)
        beams, tokens, log_probs = (some.gather(1, order) for some in (beams, tokens, log_probs))
        beam_indices = (rows[:, None] * self.tokens.shape[1] + beams).flatten()
        if len(unfinished) < len(active):
            self.state = self.state.select(rows, beam_indices)
        elif self.tokens.shape[1] > 1 or self.beam_size > 1:
            self.state = self.state.reorder(beam_indices)
        self.active = self.active[rows]
        self.tokens = self.tokens.flatten(0, 1)[beam_indices].unflatten(0, beams.shape)
        self.token_log_probs = self.token_log_probs.flatten(0, 1)[beam_indices].unflatten(
            0, beams.shape
        )
        self._append(tokens, log_probs)

    def _append(
        self, tokens: Int[Tensor, "batch beam"], log_probs: Float[Tensor, "batch beam"]
    ) -> None:
        self.tokens = torch.cat([self.tokens, tokens[..., None]], dim=-1)
        self.token_log_probs = torch.cat([self.token_log_probs, log_probs[..., None]], dim=-1)


def initial_state(
    model: DecoderModel,
    source: Tensor | DecoderState,
    lengths: Tensor | None,
    should_stop: ShouldStop | None,
) -> DecoderState:
    """Encode the source and return the decoder's first state; return a given state unchanged."""
    if should_stop is not None and should_stop():
        raise DecodingCancelled
    if not isinstance(source, Tensor):
        if not isinstance(source, DecoderState):
            raise wrong_type("source", "a tensor of token ids or a DecoderState", source)
        if lengths is not None:
            raise TypeError("lengths must be None when a search starts from a state")
        return source
    if not isinstance(model, Seq2SeqModel):
        raise TypeError(
            "a search of source tokens needs a Seq2SeqModel; other models start from a state, such "
            "as model.init_state()"
        )
    if lengths is None:
        lengths = (source != PAD).sum(dim=1)
    state: DecoderState = model.init_state(model.encode_bucketed(source, lengths))
    return state


def device_of(model: DecoderModel) -> torch.device:
    """Return the device of a model's parameters; the CPU if it has none."""
    parameters = model.parameters() if isinstance(model, nn.Module) else ()
    return next((parameter.device for parameter in parameters), torch.device("cpu"))


def _log_prob_of(token: int, log_probs: Tensor) -> Tensor:
    """Copy the log-probabilities of one token."""
    if token >= log_probs.shape[-1]:
        raise RegardError(
            f"prefix must be tokens below {log_probs.shape[-1]}, the size of the vocabulary, "
            f"but one is {token}"
        )
    return log_probs[..., token].clone()
