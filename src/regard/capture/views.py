"""Views: the axes of their results, read from strides."""

from torch import Tensor

from regard.capture.axis_labels import Axes, Axis, Factor, merged, new_axis

VIEWS = {
    *("view", "reshape", "view_as", "reshape_as", "transpose", "permute", "movedim", "moveaxis"),
    *("swapaxes", "swapdims", "t", "adjoint", "unsqueeze", "squeeze", "flatten", "unflatten"),
    *("expand", "expand_as", "broadcast_to", "chunk", "split", "split_with_sizes", "unbind"),
    *("tensor_split", "narrow", "select", "slice", "__getitem__", "unfold", "T", "mT", "H", "mH"),
    *("_unsafe_view", "atleast_2d", "atleast_3d", "diagonal", "hsplit", "vsplit", "dsplit"),
    *("transpose_", "unsqueeze_", "squeeze_", "ravel"),
}
"""Functions whose result is a view of a contiguous tensor, so that its strides tell all."""


def read_strides(axes: Axes, view: Tensor) -> Axes | None:
    """Return the axes of a view of a contiguous tensor with the given axes, from its strides."""
    factors: list[tuple[Factor, int]] = []  # innermost first, with strides in the tensor
    stride = 1
    for axis in reversed(axes):
        for factor in reversed(axis):
            factors.append((factor, stride))
            stride *= factor.size
    offset = int(view.storage_offset())
    found: list[Axis] = []
    for size, step in zip(view.shape, view.stride(), strict=True):
        if size == 1:
            found.append(())
        elif step == 0:
            found.append(new_axis(size, is_broadcast=True))
        else:
            read = _read_axis(factors, size, step)
            found.append(new_axis(size) if read is None else read)
    found = _with_starts(found, factors, offset)
    return tuple(merged(axis) for axis in found)


def _read_axis(factors: list[tuple[Factor, int]], size: int, step: int) -> Axis | None:
    """Return the factors, outermost first, that an axis of a size and stride goes over."""
    pieces: list[Factor] = []
    for factor, stride in factors:
        if not stride <= step < stride * factor.size or step % stride:
            continue
        times = step // stride
        if (size - 1) * times < factor.size:
            return (Factor(factor.origin, size, factor.stride * times), *pieces[::-1])
        if factor.size % times or size % (factor.size // times):
            return None
        inner = factor.size // times
        pieces.append(Factor(factor.origin, inner, factor.stride * times))
        size, step = size // inner, stride * factor.size
        if size == 1:
            return tuple(pieces[::-1])
    return None


def _with_starts(axes: list[Axis], factors: list[tuple[Factor, int]], offset: int) -> list[Axis]:
    """Add where a factor, and a slice of it, starts to the outermost part that is left of it."""
    for factor, stride in factors:
        shift = factor.start + offset // stride % factor.size * factor.stride
        if not shift:
            continue
        parts = [
            (n, m)
            for n, axis in enumerate(axes)
            for m, f in enumerate(axis)
            if f.origin is factor.origin
        ]
        if not parts:
            continue
        n, m = max(parts, key=lambda at: axes[at[0]][at[1]].stride)
        moved = axes[n][m]._replace(start=axes[n][m].start + shift)
        axes[n] = (*axes[n][:m], moved, *axes[n][m + 1 :])
    return axes
