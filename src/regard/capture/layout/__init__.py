"""Which axis of weights is the batch, window, head, query or key.

`roles.py` assigns a role to each part of an axis by its label, and arranges tensors by role.
`call_axes.py` has what a record needs to know beyond that: windows and their positions.
`fused.py` does both for calls of a fused kernel. `row_order.py` finds how rows that were reordered
without windows are brought back to their order.
"""

from regard.capture.layout.call_axes import PLAIN_AXES, CallAxes, Part, WindowPositions, call_axes
from regard.capture.layout.fused import FusedLayout
from regard.capture.layout.roles import (
    ROLES,
    Layout,
    Piece,
    Role,
    RowRange,
    arrange_values,
    values_layout,
    weights_layout,
)
from regard.capture.layout.row_order import RowOrder, row_order

__all__ = [
    "PLAIN_AXES",
    "ROLES",
    "CallAxes",
    "FusedLayout",
    "Layout",
    "Part",
    "Piece",
    "Role",
    "RowOrder",
    "RowRange",
    "WindowPositions",
    "arrange_values",
    "call_axes",
    "row_order",
    "values_layout",
    "weights_layout",
]
