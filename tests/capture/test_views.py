"""The axes of views are the same whether read from the tensor itself or from a stand-in for it."""

import pytest
import torch

from regard.capture.axes import AxisTracker
from regard.capture.axes.labels import axis_sizes
from regard.capture.functions import FunctionCall

VIEWS = {
    "view": (2, 3, 4, 5, 6),
    "transpose": (1, 2),
    "permute": ((2, 0, 3, 1),),
    "unsqueeze": (2,),
    "flatten": (1, 2),
    "chunk": (2, 3),
    "split": (6, -1),
    "narrow": (2, 1, 3),
    "select": (1, 2),
    "expand": (2, 3, 20, 6),
    "unflatten": (2, (4, 5)),
    "unfold": (2, 4, 4),
    "__getitem__": (slice(1, None),),
}


def origins(axes, roots):
    """Return each factor with the number of its origin among the roots."""
    return [
        [(roots.index(f.origin), *f[1:]) if f.origin in roots else f[1:] for f in a] for a in axes
    ]


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("offset", [0, 1])
def test_axes_of_a_view_do_not_depend_on_the_layout_in_memory(name, offset):
    whole = torch.randn(offset + 2, 3, 20, 6)
    found = []
    for tensor in (whole[offset:], whole[offset:].transpose(0, 3).contiguous().transpose(0, 3)):
        tracker, function = AxisTracker(), getattr(torch.Tensor, name)
        roots = [f.origin for axis in tracker.axes(tensor) for f in axis]
        if name == "view" and not tensor.is_contiguous():
            function = torch.Tensor.reshape  # as view would do if it could
        out = function(tensor, *VIEWS[name])
        call = FunctionCall(function, function.__name__, (tensor, *VIEWS[name]), {}, out)
        tracker.update(call)
        assert [axis_sizes(tracker.axes(x)) for x in call.results] == [
            list(x.shape) for x in call.results
        ]
        found.append([origins(tracker.axes(x), roots) for x in call.results])
    assert found[0] == found[1]


def test_index_that_copies_is_not_read_as_a_view():
    rows = torch.randn(5, 6)[1:]
    tracker = AxisTracker()
    copy = rows[True]
    tracker.update(FunctionCall(torch.Tensor.__getitem__, "__getitem__", (rows, True), {}, copy))
    assert axis_sizes(tracker.axes(copy)) == [1, 4, 6]
    assert tracker.axes(copy)[1] == tracker.axes(rows)[0]
