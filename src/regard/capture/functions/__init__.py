"""Calls of torch functions, as the modes see them, and what can be read from one.

`function_call.py` has the call, `arguments.py` the name and tensors in it, and `names.py` the
functions that only move, copy or cast elements. `equations.py` reads products as einsum equations,
`scatter.py` sums by index. `tensor_map.py` holds what is known about
the tensors that go from one call to the next, and `python_twin.py` shows a mode what
`multi_head_attention_forward` calls.
"""

from regard.capture.functions.arguments import (
    function_name,
    plain_name,
    tensors_by_position,
    tensors_in,
)
from regard.capture.functions.equations import PRODUCTS, Equation, Letters
from regard.capture.functions.function_call import FunctionCall
from regard.capture.functions.names import (
    CASTS,
    COPIES,
    EXPANSIONS,
    GETITEM,
    JOINS,
    RESHAPES,
    SLICES,
    SPLITS,
    TRANSPOSES,
)
from regard.capture.functions.python_twin import python_twin
from regard.capture.functions.scatter import SCATTER_SUMS, ScatterSum, scatter_sum
from regard.capture.functions.tensor_map import TensorMap

__all__ = [
    "CASTS",
    "COPIES",
    "EXPANSIONS",
    "GETITEM",
    "JOINS",
    "PRODUCTS",
    "RESHAPES",
    "SCATTER_SUMS",
    "SLICES",
    "SPLITS",
    "TRANSPOSES",
    "Equation",
    "FunctionCall",
    "Letters",
    "ScatterSum",
    "TensorMap",
    "function_name",
    "plain_name",
    "python_twin",
    "scatter_sum",
    "tensors_by_position",
    "tensors_in",
]
