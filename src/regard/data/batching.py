"""Batches: sentences grouped by length, padded, and shared out among processes."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.dataset import Encoded
from regard.data.special_tokens import END, PADDING, START

Rows = NDArray[Any]
"""The numbers of the pairs that make a batch."""


class Batch(NamedTuple):
    """Some pairs, padded: (pair, position)."""

    source: Tensor
    lengths: Tensor  # of the sources
    inputs: Tensor  # the target after its start
    targets: Tensor  # the target before its end: at each position the token that follows
    links: Tensor | None = None  # (pair, position of the target among inputs, source): 1 if linked

    @property
    def tokens(self) -> int:
        """How many tokens are to be told, ends included."""
        return int((self.targets != PADDING).sum())

    def to(self, device: torch.device) -> "Batch":
        """Move it to where the model is."""
        links = None if self.links is None else self.links.to(device)
        source, lengths, inputs, targets = (part.to(device) for part in self[:4])
        return Batch(source, lengths, inputs, targets, links)


def plan(pairs: Encoded, budget: int, seed: int, epoch: int) -> list[Rows]:
    """Part all pairs into batches of alike lengths, in an order of this epoch's own.

    A batch holds as many pairs as fit the budget of tokens, padding included, on the longer
    side; at least one.
    """
    chance = np.random.default_rng((seed, epoch))
    source, target = pairs.lengths
    # sorted by the longer side and, within one length, by the difference: up and down by turns,
    # so that neighbours are alike where one length ends and the next begins
    longer = np.maximum(source, target)
    within = np.where(longer % 2 == 0, source - target, target - source)
    order = np.lexsort((chance.random(len(target)), within, longer))
    costs = np.maximum(source, target + 1)[order]
    batches = list(_parted(order, costs, budget, first=int(chance.integers(1, budget + 1))))
    return [batches[n] for n in chance.permutation(len(batches))]


def _parted(order: Rows, costs: Rows, budget: int, first: int) -> Iterator[Rows]:
    """Cut the order where the next pair would go over the budget; the first cut is by chance."""
    start, room = 0, first
    while start < len(order):
        window = np.maximum.accumulate(costs[start : start + budget])
        fits = int(np.searchsorted(window * np.arange(1, len(window) + 1), room, side="right"))
        yield order[start : start + max(fits, 1)]
        start, room = start + max(fits, 1), budget


def collate(pairs: Encoded, rows: Rows, linked: bool = False) -> Batch:
    """Pad some pairs into a batch."""
    some = [pairs.pair(row) for row in rows.tolist()]
    source, lengths = padded([source for source, _ in some])
    target, ends = padded([target for _, target in some])
    inputs = torch.nn.functional.pad(target, (1, 0), value=START)
    targets = torch.nn.functional.pad(target, (0, 1), value=PADDING)
    targets[torch.arange(len(rows)), ends] = END
    batch = Batch(source, lengths, inputs, targets)
    return batch._replace(links=_links(pairs, rows, batch)) if linked else batch


def padded(sentences: Sequence[Sequence[int] | Rows]) -> tuple[Tensor, Tensor]:
    """Pad sentences to the longest, and tell their lengths."""
    lengths = [len(sentence) for sentence in sentences]
    numbers = np.full((len(sentences), max(lengths, default=0)), PADDING, dtype=np.int64)
    for row, sentence in zip(numbers, sentences, strict=True):
        row[: len(sentence)] = sentence
    return torch.from_numpy(numbers), torch.tensor(lengths, dtype=torch.long)


def _links(pairs: Encoded, rows: Rows, batch: Batch) -> Tensor:
    """Mark linked pieces; a target piece is the input one position after the start."""
    marks = torch.zeros(*batch.inputs.shape, batch.source.shape[1])
    for number, row in enumerate(rows.tolist()):
        for source, target in pairs.linked(row):
            marks[number, int(target) + 1, int(source)] = 1.0
    return marks


def shard(rows: Rows, rank: int, world: int) -> Rows:
    """Give a process its part of a batch; the parts differ by one pair at most."""
    return rows[rank::world]


def padding_share(pairs: Encoded, batches: list[Rows]) -> float:
    """Tell how much of all batches, both sides, is padding."""
    source, target = pairs.lengths
    cells = sum(len(b) * (source[b].max() + target[b].max()) for b in batches)
    return 1 - float(source.sum() + target.sum()) / float(cells)
