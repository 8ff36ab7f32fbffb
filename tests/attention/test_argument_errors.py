"""Every argument that does not fit is refused with a message that names it."""

import pytest
import torch

from regard.attention import (
    Additive,
    Bilinear,
    Gaussian,
    MultiHeadAttention,
    ScaledDot,
    attend,
)
from regard.errors import RegardError
from regard.masks import causal, lengths

CASES = [
    ({"score": 5}, TypeError, "score must be a name, a Score or a function .* is a int"),
    ({"score": Gaussian}, TypeError, r"it is the class Gaussian; pass an instance, Gaussian\("),
    ({"offset": -1}, RegardError, "offset must be 0 or more, a key's index, but it is -1"),
    ({"offset": 1.5}, TypeError, "offset must be an integer, but it is of type float"),
    ({"queries": torch.ones(3)}, RegardError, "same number of axes, at least two"),
    ({"queries": torch.ones(2, 2, 2, 5, 12)}, RegardError, r"shapes are \(2, 2, 2, 5, 12\)"),
    ({"queries": torch.ones(2, 5, 8)}, RegardError, r"equal widths for ScaledDot.*8 and 12"),
    ({"values": torch.ones(2, 6, 3)}, RegardError, r"one row per key, \(\*batch, 7,.*\(2, 6, 3\)"),
    ({"values": torch.ones(7, 3)}, RegardError, "one row per key"),
    ({"queries": torch.ones(3, 5, 12)}, RegardError, "batch axes.*must agree"),
    ({"queries": torch.ones(2, 5, 12).long()}, TypeError, r"pass queries\.float\(\)"),
    ({"values": torch.ones(2, 7, 3).double()}, TypeError, "one dtype.*float64"),
    ({"keys": [1.0]}, TypeError, "keys must be a tensor, but it is of type list"),
    ({"mask": torch.ones(5, 7)}, TypeError, "mask must be boolean.*bias="),
    ({"mask": torch.ones(5, 7).long()}, TypeError, r"pass mask\.bool\(\)"),
    (
        {"mask": [[True]]},
        TypeError,
        "mask must be a mask or a boolean tensor, but it is of type list",
    ),
    ({"mask": torch.ones(7, 5).bool()}, RegardError, r"broadcast to \(2, 5, 7\).*\(7, 5\)"),
    ({"mask": torch.ones(2, 3, 5, 7).bool()}, RegardError, "mask must have 2 or 3 axes"),
    ({"mask": lengths([1, 2, 3])}, RegardError, r"lengths must have the shape \(2,\).*\(3,\)"),
    ({"mask": lengths([1, 8])}, RegardError, "at most 7, the number of keys, but one is 8"),
    ({"mask": causal()}, RegardError, "5 queries and 7 keys; align='first'"),
    ({"bias": torch.ones(5, 7).bool()}, TypeError, "pass booleans as mask="),
    ({"bias": [[1.0]]}, TypeError, "bias must be a tensor, but it is of type list"),
    ({"bias": torch.ones(5, 6)}, RegardError, r"bias must broadcast to \(2, 5, 7\).*\(5, 6\)"),
    ({"dropout": 1.5}, RegardError, "dropout must be a probability from 0 to 1, but it is 1.5"),
    ({"backend": "flash"}, RegardError, "backend must be one of fused, blockwise, dense.*'flash'"),
    ({"backend": "fused", "score": ScaledDot(cap=1.0)}, RegardError, "ScaledDot does not fold"),
    ({"score": "additive"}, RegardError, r"has parameters.*regard\.Additive\(query_width"),
    ({"score": Bilinear(4, 5)}, RegardError, "built for queries of width 4 and keys of width 5"),
]


@pytest.mark.parametrize(("changes", "error", "message"), CASES, ids=lambda x: str(x)[:40])
def test_invalid_argument_is_refused_by_name(changes, error, message, unchecked):
    arguments = {
        "queries": torch.ones(2, 5, 12),
        "keys": torch.ones(2, 7, 12),
        "values": torch.ones(2, 7, 3),
    } | changes
    with pytest.raises(error, match=message):
        attend(**arguments)


def test_fused_backend_names_the_function_that_does_not_fold():
    def nearness(queries, keys):
        return -torch.cdist(queries, keys)

    with pytest.raises(RegardError, match="nearness does not fold into a dot product"):
        attend(torch.ones(2, 5, 12), score=nearness, backend="fused")


@pytest.mark.parametrize("make", [Additive, Bilinear, MultiHeadAttention])
@pytest.mark.parametrize("key_width", [0, -1])
def test_key_width_below_one_is_refused(make, key_width):
    with pytest.raises(RegardError, match=f"key_width must be 1 or more, but it is {key_width}"):
        make(8, key_width=key_width)


def test_other_widths_below_one_are_refused():
    with pytest.raises(RegardError, match="hidden_width must be 1 or more, but it is 0"):
        Additive(8, hidden_width=0)
    with pytest.raises(RegardError, match="value_width must be 1 or more, but it is 0"):
        MultiHeadAttention(8, value_width=0)
