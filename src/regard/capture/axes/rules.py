"""How each torch function changes the labels of axes: a rule by the name of the function.

A function without a rule computes each element of its result from the elements at the same place in
its arguments, broadcast against each other.
"""

from torch.nn import functional

from regard.capture.axes.indexing import (
    copy_rows,
    gather,
    gather_along,
    roll,
    scatter,
    sum_by_index,
)
from regard.capture.axes.label_store import AxesOfResults, LabelledCall, Rule
from regard.capture.axes.products import convolve, embed, multiply, project
from regard.capture.axes.shapes import as_complex, as_real, join, overwrite, reduce, resize, unfold
from regard.capture.axes.views import VIEWS, as_strided, view
from regard.capture.functions import (
    CASTS,
    COPIES,
    JOINS,
    PRODUCTS,
    SCATTER_SUMS,
)

_REDUCTIONS = {"sum", "mean", "amax", "amin", "max", "min", "prod", "logsumexp", "norm", "any"}
_REDUCTIONS |= {"all", "std", "var", "argmax", "argmin"}
_CONVOLUTIONS = {"conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d"}
_RESIZES = {"repeat_interleave", "repeat", "tile", "pad"}
_SUMS_BY_INDEX = {form for name in SCATTER_SUMS for form in (name, f"{name}_", f"_{name}")}

KEEP_PARAMETERS = VIEWS | CASTS | COPIES
"""Functions whose result is a parameter if their argument is one."""


def _getitem(call: LabelledCall) -> AxesOfResults | None:
    picked = gather(call)
    return view(call) if picked is None else picked


def _index_select(call: LabelledCall) -> AxesOfResults | None:
    picked = gather(call)
    return resize(call) if picked is None else picked


def _unfold(call: LabelledCall) -> AxesOfResults | None:
    return unfold(call) if call.call.function is functional.unfold else view(call)


RULES: dict[str, Rule] = {
    **dict.fromkeys(VIEWS, view),
    **dict.fromkeys(PRODUCTS, multiply),
    **dict.fromkeys(_CONVOLUTIONS, convolve),
    **dict.fromkeys(JOINS, join),
    **dict.fromkeys(_RESIZES, resize),
    **dict.fromkeys(_REDUCTIONS, reduce),
    **dict.fromkeys(_SUMS_BY_INDEX, sum_by_index),
    "__getitem__": _getitem,
    "__setitem__": overwrite,
    "as_strided": as_strided,
    "embedding": embed,
    "gather": gather_along,
    "index_copy": copy_rows,
    "index_copy_": copy_rows,
    "take_along_dim": gather_along,
    "index_select": _index_select,
    "linear": project,
    "roll": roll,
    "scatter": scatter,
    "scatter_": scatter,
    "unfold": _unfold,
    "view_as_complex": as_complex,
    "view_as_real": as_real,
}
"""By the name of a function. A rule that does not apply to a call leaves it to `elementwise`."""
