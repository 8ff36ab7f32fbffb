"""Negative log-likelihood of reference translations, with teacher forcing."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from regard.data import PAD, Batch, EncodedPairs, batch_by_length, collate
from regard.models import Seq2SeqModel

CHUNK_ROWS = 256  # target tokens whose logits are in memory at a time
CPU = torch.device("cpu")


@torch.no_grad()
def sum_nll(
    batch_nll: Callable[[Batch], Tensor],
    pairs: EncodedPairs,
    batch_tokens: int,
    device: torch.device = CPU,
    *,
    rank: int = 0,
    world_size: int = 1,
) -> tuple[float, int]:
    """Return the negative log-likelihood of all targets, and the number of their tokens.

    Args:
        batch_nll: returns the negative log-likelihood of a batch, summed over target tokens.
        pairs: sources and targets.
        batch_tokens: size of a batch.
        device: where the model is.
        rank: which of the processes this is; each takes every `world_size`-th batch.
        world_size: number of processes; their results add up. All compute equally many batches,
            since those of a sharded model exchange its parameters meanwhile.
    """
    nll, tokens = 0.0, 0
    batches = batch_by_length(pairs, batch_tokens, seed=0, epoch=0)
    for first in range(0, len(batches), world_size):
        is_own = first + rank < len(batches)
        batch = collate(pairs, batches[first + rank if is_own else first]).to(device)
        batch_sum = float(batch_nll(batch))
        if is_own:
            nll += batch_sum
            tokens += batch.target_tokens
    return nll, tokens


def teacher_forced_nll(model: Seq2SeqModel, batch: Batch) -> Tensor:
    """Return the negative log-likelihood of the targets given their prefixes, summed over tokens.

    The logits are computed in chunks: those of a whole batch could take gigabytes.
    """
    states = model(batch.source, batch.lengths, batch.inputs)
    is_token = batch.targets != PAD
    states, targets = states[is_token], batch.targets[is_token]
    nll: Tensor = states.new_zeros(())
    for start in range(0, len(targets), CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        nll += cross_entropy(model.logits(states[rows]), targets[rows], reduction="sum")
    return nll
