"""The positions of the queries and keys of each window, from the sources of weights and values."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.capture.layout import ROLES, Layout, Role, WindowPositions
from regard.capture.rows.sources import Anchor, Indices, Source, anchors_of


class _Rows(NamedTuple):
    """Rows (batch, window, head, row) of one anchor."""

    anchor: Anchor
    positions: Tensor  # -1 for a row that is none of the anchor's
    num_positions: int


def positions_of_weights(
    weights: Tensor, source: Source, layout: Layout, values: Source, values_layout: Layout
) -> WindowPositions | None:
    """Return the positions of queries and keys; None if they are not known.

    The keys that scores were computed from must be those whose values they are multiplied with.

    Args:
        weights: (batch · window, head, query, key).
        source: of the tensor that they were arranged of.
        layout: of that tensor.
        values: the source of the values.
        values_layout: their layout.
    """
    sizes = _sizes(layout)
    sides = [_indices(source, layout, ROLES, side) for side in (0, 1)]
    for side in (0, 1):
        queries, keys = (
            [(x, ids.masked_fill(weights == 0, 0)) for x, ids in indices]
            for indices in (sides[side], sides[1 - side])
        )
        own, compared = _without_axis(queries, 3), _without_axis(keys, 2)
        own = _without_axis(sides[side], 3) or own  # of queries without any weight, too
        if own is None or compared is None or not _are_known(queries, weights):
            continue
        multiplied = _rows_of(_value_indices(values, values_layout, layout), sizes)
        found = _rows_of(own, sizes) or _repeated_rows(own, sizes), _rows_of(compared, sizes)
        if all(found) and multiplied and _agree(found[1], multiplied, weights):
            return _settled(found[0], multiplied)
    return None


def positions_of_vectors(
    queries: Source, queries_layout: Layout, keys: Source, keys_layout: Layout, layout: Layout
) -> WindowPositions | None:
    """Return the positions of queries and keys that a fused kernel compares.

    Args:
        queries: their source.
        queries_layout: their layout.
        keys: the source of the keys.
        keys_layout: their layout.
        layout: of the weights.
    """
    sizes = _sizes(layout)
    own = _rows_of(_value_indices(queries, queries_layout, layout, "query"), sizes)
    others = _rows_of(_value_indices(keys, keys_layout, layout), sizes)
    return _settled(own, others) if own and others else None


def learned_keys(
    queries: Source, queries_layout: Layout, keys: Source, keys_layout: Layout, layout: Layout
) -> tuple[int, int]:
    """Return how many keys before and after those of the queries' own rows are learned, or zeros.

    (0, 0) unless all other keys are the rows of the queries, in their order. The arguments are
    those of `positions_of_vectors`, or weights as queries and values as keys.
    """
    sizes = _sizes(layout)
    if queries.is_compared:
        arranged = (_without_axis(_indices(queries, layout, ROLES, side), 3) for side in (0, 1))
        sides = [x for x in arranged if x]
    elif queries_layout is layout:
        return 0, 0  # weights of scores that are not known
    else:
        sides = [_value_indices(queries, queries_layout, layout, "query")]
    others = _value_indices(keys, keys_layout, layout)
    computed = _rows_of([x for x in others if not x[0].is_parameter], sizes)
    own = _rows_of(sides[0], sizes) if sides else []
    if len(own) != 1 or len(computed) != 1 or own[0].anchor is not computed[0].anchor:
        return 0, 0
    rows, positions = own[0].positions, computed[0].positions
    found = (positions[0, 0, 0] >= 0).nonzero().flatten()
    first, end = int(found[0]), int(found[-1]) + 1
    numbers = torch.arange(rows.shape[3], device=rows.device)
    are_own = positions[..., first:end].shape == rows.shape
    if not are_own or not bool((rows == numbers).all()):
        return 0, 0
    is_same = torch.equal(positions[..., first:end], rows)
    return (first, positions.shape[3] - end) if is_same else (0, 0)


def _sizes(layout: Layout) -> tuple[int, int, int]:
    return layout.size("batch"), layout.size("window"), layout.size("head")


def _indices(
    source: Source, layout: Layout, roles: Sequence[Role], side: int = 0
) -> list[tuple[Anchor, Tensor]]:
    """Return for each anchor the indices of its elements, arranged by roles."""
    found = []
    for anchor in sorted(anchors_of([source]), key=lambda x: x.order):
        indices = Indices(anchor, side).of(source)
        if indices is not None and bool(indices.any()):
            found.append((anchor, layout.arrange(indices, roles)))
    return found


def _value_indices(
    source: Source, own: Layout, weights: Layout, role: Role = "key"
) -> list[tuple[Anchor, Tensor]]:
    """Return for each anchor the indices (batch · window, head, row) of rows of vectors."""
    batch, windows, heads = _sizes(weights)
    found = []
    for anchor, indices in _indices(source, own, (*ROLES[:3], role, "value")):
        rows = indices[..., 0]
        if own.size("window") == 1 and len(rows) == batch:  # all windows share them
            rows = rows.repeat_interleave(windows, dim=0)
        if len(rows) not in (1, batch * windows) or heads % rows.shape[1] or bool((rows < 0).any()):
            return []
        rows = rows.repeat_interleave(heads // rows.shape[1], dim=1)
        found.append((anchor, rows.expand(batch * windows, -1, -1)))
    return found


def _without_axis(
    indices: list[tuple[Anchor, Tensor]], axis: int
) -> list[tuple[Anchor, Tensor]] | None:
    """Return indices without an axis along which they are constant; None if they are not."""
    found = []
    for anchor, own in indices:
        rows = own.amax(axis)
        if not bool(((own == 0) | (own == rows.unsqueeze(axis)) & (own > 0)).all()):
            return None
        found.append((anchor, rows))
    return found


def _are_known(indices: list[tuple[Anchor, Tensor]], weights: Tensor) -> bool:
    """Return whether it is known of all weights but zeros what they come from.

    Rows of padding come from nothing, and yet have weights where a projection has a bias.
    """
    known = torch.zeros_like(weights, dtype=torch.bool)
    for _, own in indices:
        known |= own > 0
    is_padding = ~known.any(-1, keepdim=True)
    return bool((known | is_padding | (weights == 0)).all())


def _rows_of(indices: list[tuple[Anchor, Tensor]], sizes: tuple[int, int, int]) -> list[_Rows]:
    """Return the positions of rows, by their indices (batch · window, head, row); none if unknown.

    Rows may be in several axes of an anchor, as those of an image are: positions then count over
    the last one first.
    """
    found = []
    for anchor, own in indices:
        own = own.unflatten(0, sizes[:2])
        coordinates = _coordinates(anchor, own - 1, own > 0)
        if coordinates is None:
            return []
        position, count = torch.zeros_like(own), 1
        for coordinate, size in reversed(coordinates):
            position, count = position + coordinate * count, count * size
        found.append(_Rows(anchor, position.masked_fill(own == 0, -1), count))
    return found


def _repeated_rows(
    indices: list[tuple[Anchor, Tensor]], sizes: tuple[int, int, int]
) -> list[_Rows]:
    """Return the same positions for each window, if rows are repeated for the windows.

    Which window has those of which item does not matter then.
    """
    if len(indices) != 1:
        return []
    ((anchor, own),) = indices
    counts = own.unique(return_counts=True)[1]
    if not bool((own > 0).all()) or not bool((counts == sizes[1]).all()) or sizes[1] == 1:
        return []
    positions = torch.arange(own.shape[2], device=own.device).expand(*sizes[:2], *own.shape[1:])
    return [_Rows(anchor, positions, own.shape[2])]


def _coordinates(anchor: Anchor, index: Tensor, known: Tensor) -> list[tuple[Tensor, int]] | None:
    """Return where rows are in the axes of the anchor that are neither the batch nor features.

    None if it is not known which axis is the batch.
    """
    batch = torch.arange(len(index), device=index.device).view(-1, 1, 1, 1)
    head = torch.arange(index.shape[2], device=index.device).view(-1, 1)
    axes, stride = [], torch.Size(anchor.shape).numel()
    for size in anchor.shape:
        stride //= size
        axes.append((index // stride % size, size))
    width = axes[-1][0] if axes else None
    axes = [(x, size) for x, size in axes if size > 1]
    is_batch = [size == len(index) > 1 and _equal(x, batch, known) for x, size in axes]
    others = [axis for axis, is_item in zip(axes, is_batch, strict=True) if not is_item]
    found = [(x, size) for x, size in others if _varies(x, known)]
    if not found:  # of a single row
        others = [(x, size) for x, size in others if x is not width]
        found = [(x, n) for x, n in others if n != index.shape[2] or not _equal(x, head, known)]
    if any(is_batch) or len(index) == 1:
        return found
    if _equal(index, index[:1].expand_as(index), known):
        return found  # all items have the same rows
    return _without_batch(found, batch, known)


def _without_batch(
    axes: list[tuple[Tensor, int]], batch: Tensor, known: Tensor
) -> list[tuple[Tensor, int]] | None:
    """Return axes whose first one is that of the batch and of rows, without the batch."""
    (x, size), *others = axes
    rows, rest = divmod(size, len(batch))
    if rest:
        return None
    if _equal(x // rows, batch, known):
        return [(x % rows, rows), *others]
    if _equal(x % len(batch), batch, known):
        return [(x // len(batch), rows), *others]
    return None


def _varies(x: Tensor, known: Tensor) -> bool:
    """Return whether values (batch, window, head, row) differ within an item and head."""
    x, known = (t.transpose(1, 2).flatten(2) for t in (x, known))
    low, high = x.masked_fill(~known, int(x.max())), x.masked_fill(~known, int(x.min()))
    return bool((low.amin(2) < high.amax(2)).any())


def _equal(x: Tensor, other: Tensor, known: Tensor) -> bool:
    return bool(((x == other) | ~known).all())


def _agree(compared: list[_Rows], multiplied: list[_Rows], weights: Tensor) -> bool:
    """Return whether all keys with any weight are the rows whose values they multiply."""
    if len(compared) > 1 and {x.anchor for x in compared} != {x.anchor for x in multiplied}:
        return False
    order = [x.anchor for x in multiplied]
    if len(compared) > 1:
        compared = sorted(compared, key=lambda x: order.index(x.anchor))
    if [x.num_positions for x in compared] != [x.num_positions for x in multiplied]:
        return False
    has_weight = (weights != 0).any(2).view_as(compared[0].positions)
    return _equal(_joined(compared), _joined(multiplied), has_weight)


def _joined(rows: list[_Rows]) -> Tensor:
    """Return positions among the rows of all anchors, one after the other."""
    joined, count = torch.full_like(rows[0].positions, -1), 0
    for own in rows:
        joined = torch.where(own.positions < 0, joined, own.positions + count)
        count += own.num_positions
    return joined


def _settled(queries: list[_Rows], keys: list[_Rows]) -> WindowPositions:
    """Return positions; those of keys that are not the rows of the queries are the last ones."""
    own = {x.anchor for x in queries}
    keys = sorted(keys, key=lambda x: x.anchor not in own)
    return WindowPositions(
        _without_equal(_joined(queries)),
        _without_equal(_joined(keys)),
        sum(x.num_positions for x in queries),
        keys[0].num_positions,
        sum(x.num_positions for x in keys[1:]),
        is_over_same_rows=keys[0].anchor in own,
        key_rows=keys[0].anchor,
    )


def _without_equal(positions: Tensor) -> Tensor:
    """Return positions (window, row), if they are the same for all items and heads."""
    if _equal(positions, positions[:1, :, :1], torch.ones_like(positions, dtype=torch.bool)):
        positions = positions[0, :, 0]
    return positions.cpu()
