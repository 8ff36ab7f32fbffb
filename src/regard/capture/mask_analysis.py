"""What a mask hides: keys from everyone, or from all that come before them."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

ROWS = 256  # of a mask that is not written out, that are asked at a time
LEAST = -1e4  # what is added to hide may be minus infinity, the least number there is, or this


def plain(mask: Tensor) -> Tensor:
    """Give the numbers of a mask; of torch's causal biases, those that they stand for."""
    if type(mask) in (Tensor, nn.Parameter):
        return mask
    materialize = getattr(mask, "_materialize", None)
    if materialize is None:
        raise TypeError(f"the mask is a {type(mask).__name__}, whose numbers are not known")
    numbers: Tensor = materialize(mask.device)
    return numbers


def may_look(mask: Tensor) -> Tensor:
    """Read a mask as booleans."""
    return mask if mask.dtype == torch.bool else mask > LEAST


def hide(scores: Tensor, mask: Tensor) -> Tensor:
    """Hide where a mask is False, or add what it adds."""
    if mask.dtype == torch.bool:
        return scores.masked_fill_(~mask, -torch.inf)
    return scores.add_(mask)


def hidden_from_all(mask: Tensor) -> Tensor:
    """Tell which keys (batch, key) no query of any head may see."""
    rows = _once(mask)
    best = rows.any(2).any(1) if rows.dtype == torch.bool else rows.amax((1, 2))
    return ~may_look(best).expand(mask.shape[0], mask.shape[3])


def hides_later(mask: Tensor, offset: int, added: int = 0) -> bool:
    """Tell whether nobody sees ahead, in any sentence or head, and queries see ever more.

    The first query stands on key `offset`; the last `added` keys stand nowhere. A mask that is
    the same for all queries hides padding, not what comes later.
    """
    mask = _once(mask)[..., : mask.shape[-1] - added]
    if mask.shape[2] == 1 or not mask.shape[3]:
        return False
    later = torch.ones(mask.shape[2:], dtype=torch.bool, device=mask.device).triu_(offset + 1)
    further = False
    for rows in mask.flatten(0, 1):
        seen = may_look(rows)
        if bool((seen & later).any()):
            return False
        further = further or bool(seen[:, offset + 1 :].any())
    return further


def seen_by_some(seen: Callable[[int, int], Tensor], queries: int) -> Tensor:
    """Tell which keys (batch, key) anyone sees, of a mask that is asked from row to row."""
    blocks = (seen(start, min(start + ROWS, queries)) for start in range(0, queries, ROWS))
    return torch.stack(list(blocks)).any(0)


def climbs(sees: Callable[[int, int], bool], queries: int, keys: int, offset: int) -> bool:
    """Tell whether nobody sees ahead, by three rows of a mask that is asked what they see.

    The first and the middle one see nothing ahead, from a key on, and the last one sees more.
    """
    if keys <= offset + 1:
        return False
    ahead = any(sees(row, offset + row + 1) for row in {0, queries // 2})
    return not ahead and sees(queries - 1, offset + 1)


def _once(mask: Tensor) -> Tensor:
    """Take what was stretched over sentences, heads or queries once."""
    for axis in range(3):
        if mask.stride(axis) == 0 and mask.shape[axis] > 1:
            mask = mask.narrow(axis, 0, 1)
    return mask
