"""Parts of one softmax, which a model multiplies with values one by one."""

from regard.capture.calls.base import Shape
from regard.capture.layout import CallAxes, Role, RowRange

PART_ROLES: tuple[Role, ...] = ("batch", "head", "query", "key")


def continued_axis(
    before: CallAxes, shape: Shape, after: CallAxes, other_shape: Shape
) -> int | None:
    """Return the axis along which weights are the next ones of the same softmax.

    Args:
        before: the axes of the weights so far.
        shape: their shape (batch, head, query, key).
        after: the axes of other weights.
        other_shape: their shape.

    Returns:
        The axis, or None if the weights are not of the same softmax or leave a gap.
    """
    if (
        not before.softmaxes
        or before.softmaxes != after.softmaxes
        or before.applied != after.applied
    ):
        return None
    if before.num_windows > 1 or after.num_windows > 1:
        return None
    if after.part is not None and after.part == before.part:  # single items, in their order
        axis = PART_ROLES.index(after.part)
    else:
        spans = [(before.spans.get(role), after.spans.get(role)) for role in PART_ROLES]
        differing = [n for n, (own, other) in enumerate(spans) if own != other]
        if len(differing) != 1:
            return None
        axis = differing[0]
        if not _follow(*spans[axis], shape[axis], other_shape[axis]):
            return None
    same = all(shape[n] == other_shape[n] for n in range(4) if n != axis)
    return axis if same else None


def joined_span(before: RowRange | None, after: RowRange | None, size: int) -> RowRange | None:
    """Return the range of rows of a part and the next one, which is of some size."""
    if before is not None:
        return RowRange(before.origin, before.start, before.size + size, before.stride)
    if after is not None:
        return RowRange(after.origin, after.start - after.stride, after.size + 1, after.stride)
    return None


def _follow(before: RowRange | None, after: RowRange | None, size: int, other_size: int) -> bool:
    """Return whether rows follow others; a part of a single row has no label."""
    if before is None:
        return size == 1 and after is not None and after.start == after.stride
    end = before.start + before.size * before.stride
    if after is None:  # heads may be followed by other features in the projection that made them
        is_last = end + before.stride == before.origin.size
        return other_size == 1 and (is_last or before.stride > 1)
    return (after.origin, after.stride, after.start) == (before.origin, before.stride, end)
