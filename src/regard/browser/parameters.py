"""Parameters as bytes that the page decodes: float32, float16, or int8 with a scale per row."""

import base64
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import RegardError, unknown_name
from regard.trace import Array

QUANTIZATIONS = ("float32", "float16", "int8")
"""Types in which a page can store the parameters."""

_FLOAT16_MAX = float(np.finfo(np.float16).max)
_INT8_MAX = 127
_ALIGNMENT = 4  # bytes: typed arrays of a browser begin at multiples of their element's size


class ParameterTable:
    """Tensors, each stored once, which the architecture refers to by their numbers.

    Args:
        quantization: one of `QUANTIZATIONS`, for matrices; vectors, which are few, stay float32.

    Raises:
        RegardError: if there is no such quantization.

    Example:
        >>> table = ParameterTable("int8")
        >>> table.add("a matrix", torch.eye(3)), table.add("a vector", torch.ones(5))
        (0, 1)
        >>> [record["dtype"] for record in table.records]
        ['int8', 'float32']
    """

    def __init__(self, quantization: str) -> None:
        if quantization not in QUANTIZATIONS:
            raise unknown_name("quantization of a page", quantization, QUANTIZATIONS)
        self.quantization = quantization
        self.records: list[dict[str, Any]] = []
        self._data = bytearray()
        self._tensors: list[Tensor] = []

    def add(self, name: str, tensor: Tensor) -> int:
        """Store a tensor, unless it is stored already; return its number.

        Args:
            name: what to call it in an error message.
            tensor: a parameter.

        Raises:
            RegardError: if a value does not fit into float16.
        """
        for number, known in enumerate(self._tensors):
            if known is tensor:
                return number
        values = tensor.detach().to("cpu", torch.float32).numpy()
        dtype = self.quantization if values.ndim > 1 else "float32"
        self.records.append(
            {"shape": list(values.shape), "dtype": dtype, "offset": len(self._data)}
        )
        self._data += _encode(name, values, dtype)
        self._data += bytes(-len(self._data) % _ALIGNMENT)
        self._tensors.append(tensor)
        return len(self._tensors) - 1

    def to_base64(self) -> str:
        """Return the bytes of all tensors in base64."""
        return base64.b64encode(self._data).decode("ascii")


def _encode(name: str, values: Array, dtype: str) -> bytes:
    """Return values as little-endian bytes; int8 rows follow their float32 scales."""
    if dtype == "float16":
        if values.size and abs(values).max() > _FLOAT16_MAX:
            raise RegardError(
                f"float16 holds values up to {_FLOAT16_MAX:.0f}, but {name} has one of "
                f"{abs(values).max():.4g}; use quantization='float32'"
            )
        return values.astype("<f2").tobytes()
    if dtype == "int8":
        largest = np.maximum(abs(values).max(axis=-1, initial=0), np.finfo(np.float32).tiny)
        scales: Array = (largest / _INT8_MAX).astype("<f4")
        integers: Array = np.rint(values / scales[..., None]).astype("<i1")
        return scales.tobytes() + integers.tobytes()
    return values.astype("<f4").tobytes()
