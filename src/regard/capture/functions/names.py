"""Torch functions that leave elements what they are, by what they do with them.

Names are those of `plain_name`; in-place variants and other spellings are not listed.
"""

GETITEM = {"getitem", "__getitem__"}  # as a plain name, and as Python calls it

RESHAPES = {
    *("view", "reshape", "view_as", "reshape_as", "flatten", "unflatten", "unsqueeze", "squeeze"),
    *("ravel", "_unsafe_view"),  # the latter in exported graphs
}
"""Functions that keep the order of elements."""

TRANSPOSES = {
    *("transpose", "permute", "movedim", "moveaxis", "swapaxes", "swapdims", "t", "adjoint"),
    *("T", "mT", "H", "mH"),
}
"""Functions that put axes in another order."""

SPLITS = {
    *("chunk", "split", "split_with_sizes", "tensor_split", "unbind", "hsplit", "vsplit"),
    "dsplit",
}
"""Functions that return all parts of a tensor."""

SLICES = {"narrow", "select", "slice", *GETITEM}
"""Functions that return a part of a tensor."""

EXPANSIONS = {"expand", "expand_as", "broadcast_to"}
"""Functions that repeat a tensor without a copy."""

JOINS = {"cat", "concat", "concatenate", "stack"}
"""Functions that join tensors."""

CASTS = {"to", "type", "type_as", "float", "half", "bfloat16", "double"}
"""Functions that change the dtype or the device."""

COPIES = {"contiguous", "clone", "detach", "alias"}
"""Functions that return the same elements, in other memory or in another graph."""
