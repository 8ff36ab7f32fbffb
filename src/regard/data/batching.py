"""Batches: sentences grouped by length, padded, and shared out among processes."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.dataset import EncodedPairs
from regard.data.special_tokens import BOS, EOS, PAD

Indices = NDArray[Any]
"""The numbers of the pairs that make a batch."""


class Batch(NamedTuple):
    """Some pairs, padded: (pair, position)."""

    source: Tensor
    lengths: Tensor  # of the sources
    inputs: Tensor  # the target after its start
    targets: Tensor  # the target before its end: at each position the token that follows
    links: Tensor | None = None  # (pair, position of the target among inputs, source): 1 if linked

    @property
    def target_tokens(self) -> int:
        """How many tokens are to be told, ends included."""
        return int((self.targets != PAD).sum())

    def to(self, device: torch.device) -> "Batch":
        """Move it to where the model is."""
        links = None if self.links is None else self.links.to(device)
        source, lengths, inputs, targets = (part.to(device) for part in self[:4])
        return Batch(source, lengths, inputs, targets, links)


def batch_by_length(pairs: EncodedPairs, budget: int, seed: int, epoch: int) -> list[Indices]:
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


def _parted(order: Indices, costs: Indices, budget: int, first: int) -> Iterator[Indices]:
    """Cut the order where the next pair would go over the budget; the first cut is by chance."""
    start, room = 0, first
    while start < len(order):
        window = np.maximum.accumulate(costs[start : start + budget])
        fits = int(np.searchsorted(window * np.arange(1, len(window) + 1), room, side="right"))
        yield order[start : start + max(fits, 1)]
        start, room = start + max(fits, 1), budget


def collate(pairs: EncodedPairs, rows: Indices, linked: bool = False) -> Batch:
    """Pad some pairs into a batch."""
    some = [pairs.pair(row) for row in rows.tolist()]
    source, lengths = pad_sequences([source for source, _ in some])
    target, ends = pad_sequences([target for _, target in some])
    inputs = torch.nn.functional.pad(target, (1, 0), value=BOS)
    targets = torch.nn.functional.pad(target, (0, 1), value=PAD)
    targets[torch.arange(len(rows)), ends] = EOS
    batch = Batch(source, lengths, inputs, targets)
    return batch._replace(links=_links(pairs, rows, batch)) if linked else batch


def pad_sequences(sentences: Sequence[Sequence[int] | Indices]) -> tuple[Tensor, Tensor]:
    """Pad sentences to the longest, and tell their lengths."""
    lengths = [len(sentence) for sentence in sentences]
    numbers = np.full((len(sentences), max(lengths, default=0)), PAD, dtype=np.int64)
    for row, sentence in zip(numbers, sentences, strict=True):
        row[: len(sentence)] = sentence
    return torch.from_numpy(numbers), torch.tensor(lengths, dtype=torch.long)


def _links(pairs: EncodedPairs, rows: Indices, batch: Batch) -> Tensor:
    """Mark linked pieces; a target piece is the input one position after the start."""
    marks = torch.zeros(*batch.inputs.shape, batch.source.shape[1])
    for number, row in enumerate(rows.tolist()):
        for source, target in pairs.links_of(row):
            marks[number, int(target) + 1, int(source)] = 1.0
    return marks


def shard(rows: Indices, rank: int, world: int) -> Indices:
    """Give a process its part of a batch; the parts differ by one pair at most."""
    return rows[rank::world]


def check_token_ids(
    name: str, tokens: Tensor, vocabulary: int, lengths: Tensor | None = None
) -> None:
    """Refuse numbers beyond the vocabulary, and sentences without words."""
    if tokens.ndim != 2 or tokens.is_floating_point():
        raise ValueError(
            f"{name} must be whole numbers (batch, position), but they are {tokens.dtype} "
            f"of shape {tuple(tokens.shape)}"
        )
    if torch.compiler.is_compiling():
        return
    if tokens.numel():
        low, high = (int(end) for end in tokens.aminmax())
        if low < 0 or high >= vocabulary:
            raise ValueError(
                f"{name} must be numbers from 0 to {vocabulary - 1}, the vocabulary's last, "
                f"but one is {low if low < 0 else high}"
            )
    if lengths is not None:
        _check_lengths(name, tokens, lengths)


def _check_lengths(name: str, tokens: Tensor, lengths: Tensor) -> None:
    if lengths.shape != tokens.shape[:1]:
        raise ValueError(
            f"lengths must be one per sentence, {len(tokens)}, but their shape is "
            f"{tuple(lengths.shape)}"
        )
    for number, length in enumerate(lengths.tolist()):
        if not 1 <= length <= tokens.shape[1]:
            raise ValueError(
                f"{name} must have from 1 to {tokens.shape[1]} words in each sentence, "
                f"but sentence {number} has {length}"
            )
