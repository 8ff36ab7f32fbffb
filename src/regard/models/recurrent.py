"""The recurrent translator: GRUs that read and write, and attention between them.

With the additive score it is Bahdanau's (2015); with dot or bilinear, Luong's (2015).
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.attention import KeyValues, attend, look, make_score
from regard.data import check_token_ids
from regard.masks import Mask, padding
from regard.models.dropout import dropout
from regard.models.layers import Embedding
from regard.models.protocols import Looks


class Source(NamedTuple):
    """The source as keys to compare with and values to gather, and the writer's first state."""

    memory: KeyValues  # (sentence, key, width)
    keep: Tensor  # (sentence, key)
    first: Tensor  # (layer, sentence, width)


class Past(NamedTuple):
    """What the writer knows after some steps."""

    states: Tensor  # (layer, continuation, width)
    source: Source

    def reorder(self, rows: Tensor) -> "Past":
        """Let each continuation go on from the given one's past; the source stays."""
        return self._replace(states=self.states[:, rows])

    def keep(self, sentences: Tensor, rows: Tensor) -> "Past":
        """Go on with some sentences, and with the continuations that are given by their rows."""
        memory, keep, first = self.source
        source = Source(memory.reorder(sentences), keep[sentences], first[:, sentences])
        return Past(self.states[:, rows], source)


class Recurrent(nn.Module):
    """A bidirectional GRU reads; a GRU writes, looking at what was read before each word."""

    looks_late = False

    def __init__(
        self,
        source: Embedding,
        target: Embedding,
        *,
        layers: int = 1,
        score: str = "additive",
        attends: bool = True,
        dropout: float = 0.0,
        tied: bool = True,
    ) -> None:
        super().__init__()
        if target.positions is not None:
            raise ValueError(
                "target must be an embedding without positions, but it has some: the writer's "
                "state knows how far it is"
            )
        width, between = target.width, dropout if layers > 1 else 0.0
        self.source, self.target = source, target
        self.reader = nn.GRU(
            source.width,
            width,
            layers,
            batch_first=True,
            dropout=between,
            bidirectional=True,
        )
        self.bridge = nn.Linear(width, width)
        self.score = make_score(score, (width, 2 * width))
        # scores that compare vectors of one width need the two directions brought to one
        equal = getattr(self.score, "widths", None) == "equal"
        self.narrow = nn.Linear(2 * width, width, bias=False) if equal else None
        self.writer = nn.GRU(3 * width, width, layers, batch_first=True, dropout=between)
        self.readout = nn.Linear(4 * width, width)
        self.last = None if tied else nn.Linear(width, target.vocabulary, bias=False)
        self.attends = attends
        self.dropout = dropout

    def encode(self, source: Tensor, lengths: Tensor) -> Source:
        """Read the source both ways, and project its keys once."""
        check_token_ids("source", source, self.source.vocabulary, lengths)
        packed = pack_padded_sequence(
            self.source(source), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        outputs, last = self.reader(packed)
        states, _ = pad_packed_sequence(outputs, batch_first=True, total_length=source.shape[1])
        keep = torch.arange(source.shape[1], device=source.device) < lengths[:, None]
        # the backward direction has just read the first word when the writer starts
        first = torch.tanh(self.bridge(last[1::2]))
        return Source(KeyValues(self._keys(states), states), keep, first)

    def decode(self, target: Tensor, memory: Source) -> Tensor:
        """Read a whole target (batch, position), word by word, since each look needs the last."""
        check_token_ids("target", target, self.target.vocabulary)
        return self._written(target, memory, None)

    def start(self, memory: Source) -> Past:
        """Give the past before the first step."""
        return Past(memory.first, memory)

    def step(self, tokens: Tensor, past: Past) -> tuple[Tensor, Past]:
        """Read one token per continuation, (sentence, beam)."""
        words = self.target(tokens)
        states, context, past = self._heard(words, past, None)
        return self._read_out(states, context, words), past

    def output(self, states: Tensor) -> Tensor:
        """Score every token of the vocabulary as the next one."""
        return linear(states, self.output_weight)

    @property
    def output_weight(self) -> Tensor:
        """The output layer: a vector per token of the target vocabulary."""
        return self.target.weight if self.last is None else self.last.weight

    def look(self, source: Tensor, lengths: Tensor, target: Tensor) -> tuple[Tensor, Looks]:
        """Encode and decode, and tell where the writer looked before each word."""
        check_token_ids("target", target, self.target.vocabulary)
        notes: list[Tensor] = []
        states = self._written(target, self.encode(source, lengths), notes)
        return states, Looks(cross=(torch.cat(notes, dim=1)[:, None],))

    def _keys(self, states: Tensor) -> Tensor:
        if self.narrow is not None:
            narrowed: Tensor = self.narrow(states)
            return narrowed
        project = getattr(self.score, "project_keys", None)
        return states if project is None else project(states)

    def _written(self, target: Tensor, memory: Source, notes: list[Tensor] | None) -> Tensor:
        words: Tensor = self.target(target)
        past, heard = self.start(memory), []
        if not target.shape[1]:
            return torch.zeros_like(words)
        for word in words.split(1, dim=1):
            states, context, past = self._heard(word, past, notes)
            heard.append((states, context))
        # what is written does not come back, so all of it is written at once
        states, contexts = (torch.cat(parts, dim=1) for parts in zip(*heard, strict=True))
        return self._read_out(states, contexts, words)

    def _heard(
        self, words: Tensor, past: Past, notes: list[Tensor] | None
    ) -> tuple[Tensor, Tensor, Past]:
        """Look from the last state, (sentence, beam, width), then read one word."""
        memory, keep, _ = past.source
        if not self.attends:
            keep = _only_the_end(keep)
        if past.states.shape[1] != len(words) * words.shape[1]:
            raise ValueError(
                f"there must be a token for each of {past.states.shape[1]} continuations, but "
                f"their shape is {tuple(words.shape[:2])}"
            )
        queries = past.states[-1].view(*words.shape[:2], -1)
        context = self._context(queries, memory, padding(keep), notes)
        inputs = torch.cat([words, context], dim=-1).flatten(0, 1).unsqueeze(1)
        states, layers = self.writer(inputs, past.states.contiguous())
        return states.view(*words.shape[:2], -1), context, past._replace(states=layers)

    def _read_out(self, states: Tensor, context: Tensor, words: Tensor) -> Tensor:
        written = torch.tanh(self.readout(torch.cat([states, context, words], dim=-1)))
        return dropout(written, self.dropout, self.training)

    def _context(
        self, queries: Tensor, memory: KeyValues, mask: Mask, notes: list[Tensor] | None
    ) -> Tensor:
        project = getattr(self.score, "project_queries", None)
        queries = queries if project is None else project(queries)
        score = getattr(self.score, "compare", self.score)
        if notes is None:
            return attend(queries, *memory, score=score, mask=mask)
        context, weights = look(queries, *memory, score=score, mask=mask)
        notes.append(weights)
        return context


def _only_the_end(keep: Tensor) -> Tensor:
    """Let the last word alone be seen: the summary that a model without attention has."""
    return keep & (keep.cumsum(dim=1) == keep.sum(dim=1, keepdim=True))
