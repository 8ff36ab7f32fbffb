"""What a record has for each key: the norm of its value, and whether it is masked."""

import torch
from torch import Tensor

from regard.capture.calls import CapturedCall, repeat_groups


def norms_of_values(call: CapturedCall, heads: list[int]) -> Tensor | None:
    """Return the norm of each value vector (batch, head, key), repeated for grouped heads."""
    if call.values is None:
        return None
    batch, num_heads, _, keys = call.shape
    norms = torch.linalg.vector_norm(call.values.float(), dim=-1)
    return repeat_groups(norms, heads, num_heads).expand(batch, len(heads), keys).cpu()


def masked_keys(call: CapturedCall) -> Tensor:
    """Return the keys (batch, key) masked for all queries; without a mask, none."""
    masked = call.fully_masked_keys()
    if masked is None:
        return torch.zeros(call.shape[0], call.shape[3], dtype=torch.bool, device="cpu")
    return masked.cpu()


def masked_in_both(before: Tensor | None, now: Tensor) -> Tensor:
    """Return the keys masked in all steps; a step does not count for keys that it did not have."""
    if before is None:
        return now
    masked = now.clone()
    masked[:, : before.shape[1]] &= before[:, : now.shape[1]]
    return masked
