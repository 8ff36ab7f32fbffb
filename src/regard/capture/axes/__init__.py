"""Where each axis of a tensor comes from, followed through torch functions.

`labels.py` has the labels of axes, and `combining.py` labels that are made of others;
`label_store.py` has those of all live tensors, and `tracker.py` updates them with each function.
How a function changes them is read from the strides of a view (`views.py`), or by a rule of its own
(`rules.py`): for products (`products.py`), for elements that an index picks or sums
(`indexing.py`), and for parts that are joined, repeated or reduced (`shapes.py`). All others
combine their arguments element by element (`broadcasting.py`).
"""

from regard.capture.axes.combining import aliased, merged, preferred_axis
from regard.capture.axes.labels import (
    Axes,
    Axis,
    Factor,
    Gather,
    Origin,
    axis_size,
    new_axis,
    origins_of,
)
from regard.capture.axes.tracker import AxisTracker

__all__ = [
    "Axes",
    "Axis",
    "AxisTracker",
    "Factor",
    "Gather",
    "Origin",
    "aliased",
    "axis_size",
    "merged",
    "new_axis",
    "origins_of",
    "preferred_axis",
]
