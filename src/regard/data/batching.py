"""Batches of pairs: bucketed by length, padded, and sharded over processes."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard._support.torch_modes import can_read_values
from regard.data.dataset import EncodedPairs
from regard.data.special_tokens import BOS, EOS, PAD
from regard.errors import RegardError

Indices = NDArray[Any]
"""Indices of the pairs of a batch."""


class Batch(NamedTuple):
    """Padded pairs, one per row: (pair, position)."""

    source: Tensor
    lengths: Tensor  # of the sources
    inputs: Tensor  # decoder input: the target, shifted right behind BOS
    targets: Tensor  # at each position the token to predict: the target, then EOS
    links: Tensor | None = None  # (pair, input position, source position): 1.0 if aligned

    @property
    def target_tokens(self) -> int:
        """Number of tokens to predict, EOS included, padding not."""
        return int((self.targets != PAD).sum())

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on another device."""
        links = None if self.links is None else self.links.to(device)
        source, lengths, inputs, targets = (part.to(device) for part in self[:4])
        return Batch(source, lengths, inputs, targets, links)


def batch_by_length(pairs: EncodedPairs, batch_tokens: int, seed: int, epoch: int) -> list[Indices]:
    """Group all pairs into batches of similar length (length bucketing), in random order.

    Pairs are sorted by the longer side and, within one length, by the difference of the sides,
    rising and falling in turn, so that neighbours are similar where one length ends and the next
    begins. Ties, the first cut and the order of the batches are random, so that every epoch has
    other batches.

    Args:
        pairs: the encoded pairs.
        batch_tokens: maximal size of a batch: pairs times the longer side, padding included. A
            longer pair is a batch of its own.
        seed: seed of the order.
        epoch: number of the epoch; equal seed and epoch give equal batches.

    Returns:
        The indices of the pairs of each batch; every pair is in exactly one.
    """
    rng = np.random.default_rng((seed, epoch))
    source, target = pairs.lengths
    longer = np.maximum(source, target)
    within = np.where(longer % 2 == 0, source - target, target - source)
    order = np.lexsort((rng.random(len(target)), within, longer))
    costs = np.maximum(source, target + 1)[order]
    first = int(rng.integers(1, batch_tokens + 1))
    batches = list(_cut(order, costs, batch_tokens, first))
    return [batches[n] for n in rng.permutation(len(batches))]


def _cut(order: Indices, costs: Indices, batch_tokens: int, first: int) -> Iterator[Indices]:
    """Cut the order wherever the next pair would exceed the budget; the first budget is given."""
    start, budget = 0, first
    while start < len(order):
        longest = np.maximum.accumulate(costs[start : start + batch_tokens])
        sizes = longest * np.arange(1, len(longest) + 1)
        count = max(int(np.searchsorted(sizes, budget, side="right")), 1)
        yield order[start : start + count]
        start, budget = start + count, batch_tokens


def collate(pairs: EncodedPairs, indices: Indices, with_links: bool = False) -> Batch:
    """Pad some pairs into a batch.

    Args:
        pairs: the encoded pairs.
        indices: which of them.
        with_links: also return the word alignment, for guided alignment.
    """
    batch = collate_tokens([pairs.pair(index) for index in indices.tolist()])
    return batch._replace(links=_links(pairs, indices, batch)) if with_links else batch


def collate_tokens(
    pairs: Sequence[tuple[Sequence[int] | Indices, Sequence[int] | Indices]],
) -> Batch:
    """Pad pairs of token ids, without BOS and EOS, into a batch.

    Example:
        >>> collate_tokens([([5, 6], [7]), ([8], [9, 4])]).targets.tolist()
        [[7, 2, 0], [9, 4, 2]]
    """
    source, lengths = pad_sequences([source for source, _ in pairs])
    target, target_lengths = pad_sequences([target for _, target in pairs])
    inputs = torch.nn.functional.pad(target, (1, 0), value=BOS)
    targets = torch.nn.functional.pad(target, (0, 1), value=PAD)
    targets[torch.arange(len(pairs), device="cpu"), target_lengths] = EOS
    return Batch(source, lengths, inputs, targets)


def pad_sequences(sequences: Sequence[Sequence[int] | Indices]) -> tuple[Tensor, Tensor]:
    """Pad sequences of token ids to the longest.

    Returns:
        The ids (sequence, position), padded with PAD, and the lengths.

    Example:
        >>> ids, lengths = pad_sequences([[5, 6, 7], [8]])
        >>> ids.tolist(), lengths.tolist()
        ([[5, 6, 7], [8, 0, 0]], [3, 1])
    """
    lengths = [len(sequence) for sequence in sequences]
    ids = np.full((len(sequences), max(lengths, default=0)), PAD, dtype=np.int64)
    for row, sequence in zip(ids, sequences, strict=True):
        row[: len(sequence)] = sequence
    return torch.from_numpy(ids), torch.tensor(lengths, dtype=torch.long, device="cpu")


def _links(pairs: EncodedPairs, indices: Indices, batch: Batch) -> Tensor:
    """Return 1.0 for aligned pieces: target piece j is written at position j, after BOS is read."""
    links = torch.zeros(*batch.inputs.shape, batch.source.shape[1], device="cpu")
    for row, index in enumerate(indices.tolist()):
        for source, target in pairs.links_of(index):
            links[row, int(target), int(source)] = 1.0
    return links


def shard(indices: Indices, rank: int, world_size: int) -> Indices:
    """Return a process's share of a batch; shares differ by one pair at most."""
    return indices[rank::world_size]


def check_token_ids(
    name: str, tokens: Tensor, vocab_size: int, lengths: Tensor | None = None
) -> None:
    """Raise RegardError unless ids are (batch, position), in the vocabulary, and lengths fit.

    Args:
        name: name of the argument, for the message.
        tokens: token ids.
        vocab_size: size of the vocabulary.
        lengths: number of tokens of each batch item, at least 1.
    """
    if tokens.ndim != 2 or tokens.is_floating_point():
        raise RegardError(
            f"{name} must be integers of shape (batch, position), but its dtype is {tokens.dtype} "
            f"and its shape {tuple(tokens.shape)}"
        )
    if not can_read_values(tokens):
        return
    if tokens.numel():
        low, high = (int(end) for end in tokens.aminmax())
        if low < 0 or high >= vocab_size:
            raise RegardError(
                f"{name} must be token ids from 0 to {vocab_size - 1}, the size of the vocabulary "
                f"- 1, but one is {low if low < 0 else high}"
            )
    if lengths is not None:
        _check_lengths(name, tokens, lengths)


def _check_lengths(name: str, tokens: Tensor, lengths: Tensor) -> None:
    if lengths.shape != tokens.shape[:1]:
        raise RegardError(
            f"lengths must have shape ({len(tokens)},), one per batch item, but it is "
            f"{tuple(lengths.shape)}"
        )
    for item, length in enumerate(lengths.tolist()):
        if not 1 <= length <= tokens.shape[1]:
            raise RegardError(
                f"lengths must be from 1 to {tokens.shape[1]}, the width of {name}, but item "
                f"{item} has length {length}"
            )
