"""The exact weights of any mechanism that is linear in its values."""

from collections.abc import Callable

import torch
from torch import Tensor


@torch.no_grad()
def recover_weights(
    mechanism: Callable[[Tensor, Tensor, Tensor], Tensor],
    queries: Tensor,
    keys: Tensor,
    width: int | None = None,
) -> Tensor:
    """Feed one-hot values, so that what a query gathers is its row of weights.

    Works for anything that mixes values by weights of its own making: fused kernels, linear
    attention, a module's inner part. Queries are (*batch, query, width), keys (*batch, key,
    width); the mechanism gets values (*batch, key, `width`), so many columns at a time; all by
    default.
    """
    count = keys.shape[-2]
    width = count if width is None else width
    if width < 1:
        raise ValueError(f"width must be 1 or more columns of values, but it is {width}")
    columns = torch.eye(count, dtype=keys.dtype, device=keys.device)
    found = []
    for part in columns.split(width, dim=-1):
        short = width - part.shape[-1]
        values = torch.nn.functional.pad(part, (0, short)).expand(*keys.shape[:-1], width)
        gathered = mechanism(queries, keys, values)
        if gathered.shape[-1] != width:
            raise ValueError(
                f"the mechanism must gather values of width {width}, but what it gave has the "
                f"shape {tuple(gathered.shape)}"
            )
        found.append(gathered[..., : part.shape[-1]])
    return torch.cat(found, dim=-1)
