"""Parts of one softmax of which some are within windows: local keys and global ones, for instance.

Where the positions of both are known, the weights of each query are those of its window and those
of the other part, one after the other.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.capture.layout import WindowPositions


@dataclass(frozen=True, slots=True)
class WindowPart:
    """Weights of a part of a softmax, and what is known of its keys.

    Attributes:
        weights: (batch, window, head, query, key).
        positions: of queries and keys.
        norms: (batch, window, head, key), of values, if they are known.
        masked: (batch, window, key), keys masked for all queries.
    """

    weights: Tensor
    positions: WindowPositions
    norms: Tensor | None
    masked: Tensor


def joined_windows(part: WindowPart, other: WindowPart) -> WindowPart | None:
    """Return the part with the keys of another one appended; None if they do not fit.

    Keys that are rows of another tensor, such as global tokens beside a text, are no positions of
    the text, and come after these.

    Args:
        part: with windows.
        other: with the same windows, or without any.
    """
    own, theirs = part.positions, other.positions
    if own.num_queries != theirs.num_queries or own.num_extra or theirs.num_extra:
        return None
    num_extra = 0 if own.key_rows is theirs.key_rows else theirs.num_keys
    if not num_extra and own.num_keys != theirs.num_keys:
        return None
    weights = _rows_in_windows(part, other)
    if weights is None:
        return None
    windows = part.weights.shape[1]
    norms = None
    if part.norms is not None and other.norms is not None:
        norms = torch.cat([part.norms, other.norms.expand(-1, windows, -1, -1)], dim=3)
    return WindowPart(
        torch.cat([part.weights, weights], dim=4),
        replace(
            own, keys=_joined_keys(part, other, num_extra and own.num_keys), num_extra=num_extra
        ),
        norms,
        torch.cat([part.masked, other.masked.expand(-1, windows, -1)], dim=2),
    )


def _rows_in_windows(part: WindowPart, other: WindowPart) -> Tensor | None:
    """Return the other weights in the windows that their queries are in."""
    batch, windows, heads, *_ = part.weights.shape
    own = _per_head(part.positions.queries, batch, heads)
    theirs = _per_head(other.positions.queries, batch, heads)
    if own.shape == theirs.shape and torch.equal(own, theirs):
        return other.weights
    if other.weights.shape[1] > 1:
        return None
    count, num_rows = part.positions.num_queries, theirs.shape[3]
    table = torch.full((batch, heads, count + 1), num_rows, dtype=torch.long)
    table.scatter_(2, theirs[:, 0] % (count + 1), torch.arange(num_rows).expand_as(theirs[:, 0]))
    table[..., count] = num_rows  # of padding, a row of zeros
    rows = table.gather(2, (own % (count + 1)).transpose(1, 2).flatten(2))
    weights = pad(other.weights[:, 0], (0, 0, 0, 1))
    found = weights.gather(2, rows[..., None].expand(-1, -1, -1, weights.shape[3]))
    if not torch.allclose(found.sum((2, 3)), weights.sum((2, 3)), atol=1e-4):
        return None  # some queries are in no window, or in several
    in_windows: Tensor = found.unflatten(2, (windows, -1)).transpose(1, 2)
    return in_windows


def _joined_keys(part: WindowPart, other: WindowPart, shift: int) -> Tensor:
    """Return the positions of all keys, those of the other part shifted unless they are padding."""
    own, theirs = part.positions.keys, other.positions.keys
    theirs = torch.where(theirs < 0, theirs, theirs + shift)
    batch, windows, heads, *_ = part.weights.shape
    if own.ndim == theirs.ndim == 2:
        return torch.cat([own, theirs.expand(windows, -1)], dim=1)
    keys = [_per_head(x, batch, heads).expand(-1, windows, -1, -1) for x in (own, theirs)]
    return torch.cat(keys, dim=3)


def _per_head(positions: Tensor, batch: int, heads: int) -> Tensor:
    """Return positions (batch, window, head, row)."""
    if positions.ndim == 2:
        positions = positions[None, :, None]
    return positions.expand(batch, -1, heads, -1)
