"""Reading attention masks: which keys are masked for all queries, and whether a mask is causal."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

BLOCK_ROWS = 256  # rows evaluated at a time of a mask that is a function
MASKED_AT = -1e4  # additive masks use -inf, the dtype's minimum or this; at or below is masked


def as_tensor(mask: Tensor) -> Tensor:
    """Return a mask as a plain tensor; torch's causal biases are materialized.

    Raises:
        TypeError: if the mask is of a tensor subclass whose values cannot be read.
    """
    if type(mask) in (Tensor, nn.Parameter):
        return mask
    materialize = getattr(mask, "_materialize", None)
    if materialize is None:
        raise TypeError(
            f"cannot read the mask: {type(mask).__name__} is an unknown tensor subclass"
        )
    tensor: Tensor = materialize(mask.device)
    return tensor


def as_boolean(mask: Tensor) -> Tensor:
    """Convert an additive mask to a boolean one; True means may attend."""
    return mask if mask.dtype == torch.bool else mask > MASKED_AT


def apply_mask(scores: Tensor, mask: Tensor) -> Tensor:
    """Fill masked scores with -inf, or add an additive mask, in place."""
    if mask.dtype == torch.bool:
        return scores.masked_fill_(~mask, -torch.inf)
    return scores.add_(mask)


def fully_masked_keys(mask: Tensor) -> Tensor:
    """Return the keys (batch, key) that are masked for all heads and queries."""
    rows = _without_broadcast(mask)
    best = rows.any(2).any(1) if rows.dtype == torch.bool else rows.amax((1, 2))
    return ~as_boolean(best).expand(mask.shape[0], mask.shape[3])


def is_causal(mask: Tensor, offset: int, extra_keys: int = 0) -> bool:
    """Return whether a mask (batch, head, query, key) hides all later keys from every query.

    Query i is at key `offset + i`; the last `extra_keys` keys are not positions and are ignored. A
    mask that is the same for all queries is padding, not causal: some query must see a key after
    the first query's.
    """
    mask = _without_broadcast(mask)[..., : mask.shape[-1] - extra_keys]
    if mask.shape[2] == 1 or not mask.shape[3]:
        return False
    later = torch.ones(mask.shape[2:], dtype=torch.bool, device=mask.device).triu_(offset + 1)
    grows = False
    for rows in mask.flatten(0, 1):
        visible = as_boolean(rows)
        if bool((visible & later).any()):
            return False
        grows = grows or bool(visible[:, offset + 1 :].any())
    return grows


def is_causal_sampled(
    sees_from: Callable[[int, int], bool], queries: int, keys: int, offset: int
) -> bool:
    """Return whether a mask that is a function is causal, judged by three of its rows.

    `sees_from(row, key)` returns whether a query sees `key` or any key after it. The first and the
    middle query must see no later key, and the last one must see a key after the first query's.
    """
    if keys <= offset + 1:
        return False
    if any(sees_from(row, offset + row + 1) for row in {0, queries // 2}):
        return False
    return sees_from(queries - 1, offset + 1)


def visible_to_any(visible: Callable[[int, int], Tensor], queries: int) -> Tensor:
    """Return the keys (batch, key) that any query sees, of a mask that is a function.

    `visible(start, stop)` returns the keys (batch, key) that any query of a block of rows sees.
    """
    starts = range(0, queries, BLOCK_ROWS)
    blocks = [visible(start, min(start + BLOCK_ROWS, queries)) for start in starts]
    return torch.stack(blocks).any(0)


def _without_broadcast(mask: Tensor) -> Tensor:
    """Undo `expand` over batch, head and query, so that each row is read once."""
    for axis in range(3):
        if mask.stride(axis) == 0 and mask.shape[axis] > 1:
            mask = mask.narrow(axis, 0, 1)
    return mask
