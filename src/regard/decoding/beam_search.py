"""A search under way: texts grow token by token, end, and leave it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.data import BOS, EOS, PAD
from regard.decoding.topk import Candidates
from regard.models.protocols import DecoderModel, Past

ROWS = 128  # continuations that are scored at a time: enough to fill the kernels, few to hold


class Hypothesis(NamedTuple):
    """One text: its tokens without start and end, and how likely the model finds it."""

    tokens: tuple[int, ...]
    log_probability: float
    score: float  # log probability / length^penalty, end counted, by which a beam ranks


@dataclass(frozen=True, kw_only=True, slots=True)
class LengthLimits:
    """How long a text may be, end not counted, and how it must begin; at the longest it ends."""

    shortest: int = 0
    longest: int = 256
    prefix: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.shortest <= self.longest:
            raise ValueError(
                f"shortest must be from 0 to longest, but they are {self.shortest} and "
                f"{self.longest}"
            )
        if len(self.prefix) > self.longest:
            raise ValueError(
                f"prefix must have at most {self.longest} tokens, the longest length, "
                f"but it has {len(self.prefix)}"
            )
        for token in self.prefix:
            if token < 0 or token in (PAD, BOS, EOS):
                raise ValueError(
                    "prefix must be tokens of the vocabulary, without padding, start and end, "
                    f"but one is {token}"
                )


@dataclass
class BeamSearch:
    """A search under way; sentences that have enough texts leave it.

    Rows count the continuations of all sentences that are still open, sentence by sentence.
    """

    model: DecoderModel
    past: Past
    sentences: int
    beams: int
    penalty: float
    limits: LengthLimits
    open: Tensor = field(init=False)  # the numbers of the sentences that are still open
    tokens: Tensor = field(init=False)  # (open sentence, continuation, position)
    totals: Tensor = field(init=False)  # (open sentence, continuation), log probabilities
    found: list[list[Hypothesis]] = field(init=False)
    sheet: Tensor | None = field(init=False, default=None)  # where scores are written

    def run(self, choose: Callable[[Tensor, Tensor], Candidates]) -> list[list[Hypothesis]]:
        """Take steps until every sentence has as many texts as beams."""
        self._begin()
        for length in range(len(self.limits.prefix), self.limits.longest + 1):
            if not len(self.open):
                break
            choice = self._chosen(choose, length)
            self._note(choice)
            self._go_on(choice)
        for sentence, texts in enumerate(self.found):
            if not texts:
                raise _nothing_to_say(sentence)
        return self.found

    def _begin(self) -> None:
        """Force the prefix, if there is one, upon every sentence."""
        self.found = [[] for _ in range(self.sentences)]
        device = device_of(self.model)
        self.open = torch.arange(self.sentences, device=device)
        self.totals = torch.zeros(self.sentences, 1, device=device)
        self.tokens = torch.full((self.sentences, 1, 1), BOS, device=device)
        for token in self.limits.prefix if self.sentences else ():
            self.totals = torch.cat([likely + _of(token, logs) for logs, likely in self._next()])
            forced = torch.full_like(self.tokens[..., :1], token)
            self.tokens = torch.cat([self.tokens, forced], dim=-1)

    def _chosen(self, choose: Callable[[Tensor, Tensor], Candidates], length: int) -> Candidates:
        """Choose the tokens that may come next."""
        some = [choose(self._allowed(logs, length), likely) for logs, likely in self._next()]
        return Candidates(*map(torch.cat, zip(*some, strict=True)))

    def _next(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Score the next token, a few sentences at a time, until all are scored.

        Gives log probabilities (sentence, continuation, token), and those of the texts so far.
        The sum of both, and the scores of all sentences, are never written out, since only a few
        tokens are chosen.
        """
        states, self.past = self.model.step(self.tokens[..., -1], self.past)
        each = max(ROWS // states.shape[1], 1)
        for some, likely in zip(states.split(each), self.totals.split(each), strict=True):
            logits = self.model.output(some).float()
            # a copy, since a model may keep what it gave
            logs = torch.log_softmax(logits, dim=-1, out=self._written_over(logits))
            lost = logs[..., :1].isnan()  # all of a continuation's, or none
            if lost.any():
                logs.masked_fill_(lost, -torch.inf)  # else it would drive out all sound ones
            yield logs, likely

    def _written_over(self, logits: Tensor) -> Tensor:
        """Give room for scores where those before were.

        Megabytes that are allocated and freed at every step come from the system anew, page by
        page, which takes as long as to compute them.
        """
        if self.sheet is None or self.sheet.numel() < logits.numel():
            self.sheet = torch.empty_like(logits).flatten()
        return self.sheet[: logits.numel()].view(logits.shape)

    def _allowed(self, logits: Tensor, length: int) -> Tensor:
        for token in (PAD, BOS):
            logits[..., token] = -torch.inf
        if length < self.limits.shortest:
            logits[..., EOS] = -torch.inf
        if length == self.limits.longest:
            logits[..., EOS + 1 :] = -torch.inf
        return logits

    def _note(self, choice: Candidates) -> None:
        """Keep the texts that ended among the best, as many as there are beams."""
        totals, parents, tokens = (numbers[:, : self.beams] for numbers in choice)
        for row, rank in ((tokens == EOS) & totals.isfinite()).nonzero().tolist():
            texts = self.found[int(self.open[row])]
            if len(texts) < self.beams:
                text = self.tokens[row, parents[row, rank], 1:].tolist()
                total = totals[row, rank].item()
                texts.append(
                    Hypothesis(tuple(text), total, total / (len(text) + 1) ** self.penalty)
                )

    def _go_on(self, choice: Candidates) -> None:
        """Take the best that did not end, of the sentences that have not enough."""
        short = [s for s, n in enumerate(self.open.tolist()) if len(self.found[n]) < self.beams]
        everyone = len(short) == len(self.open)
        rows = torch.tensor(short, dtype=torch.long, device=self.open.device)
        totals, parents, tokens = (numbers[rows] for numbers in choice)
        totals = totals.masked_fill(tokens == EOS, -torch.inf)
        self.totals, order = totals.topk(min(self.beams, totals.shape[1]), dim=1)
        parents, tokens = parents.gather(1, order), tokens.gather(1, order)
        came_from = (rows[:, None] * self.tokens.shape[1] + parents).flatten()
        if not everyone:
            self.past = self.past.keep(rows, came_from)
        elif self.tokens.shape[1] > 1 or self.beams > 1:
            self.past = self.past.reorder(came_from)
        before = self.tokens.flatten(0, 1)[came_from].unflatten(0, parents.shape)
        self.tokens = torch.cat([before, tokens[..., None]], dim=-1)
        self.open = self.open[rows]


def _of(token: int, logs: Tensor) -> Tensor:
    if token >= logs.shape[-1]:
        raise ValueError(
            f"prefix must be tokens below {logs.shape[-1]}, the size of the vocabulary, "
            f"but one is {token}"
        )
    return logs[..., token]


def device_of(model: DecoderModel) -> torch.device:
    """Find where a model computes: where its weights are."""
    weights = model.parameters() if isinstance(model, nn.Module) else ()
    return next((weight.device for weight in weights), torch.device("cpu"))


def _nothing_to_say(sentence: int) -> ValueError:
    return ValueError(
        f"every sentence must end in a text, but {sentence} (counted from 0) found none: the "
        "model's scores are NaN, as after a training that diverged, or the limits leave no token "
        "to say; sound weights, or wider limits, would do"
    )
