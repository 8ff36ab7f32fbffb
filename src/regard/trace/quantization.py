"""Linear quantization of arrays: unsigned integers in base64, with one scale per array."""

import base64
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard._support.text import shorten
from regard.errors import RegardError

Array = NDArray[Any]

MAX_AXES = 3  # head, query, key

_DTYPES = {8: "<u1", 16: "<u2", 32: "<u4"}
_MAX_FLOAT32 = float(np.finfo(np.float32).max)


def to_array(values: Any) -> Array:
    """Convert a tensor (of any device, dtype and `requires_grad`), array or nested list to float32.

    Example:
        >>> to_array([[0.25, 0.75]]).dtype
        dtype('float32')
    """
    if hasattr(values, "detach"):
        values = values.detach().float().cpu().numpy()
    return np.asarray(values, dtype=np.float32)


def quantize(values: Array, bits: int = 16) -> dict[str, Any]:
    """Encode non-negative values as integers times a scale.

    Floats are rounded to multiples of max / (2^bits - 1). Integers stay exact, in the fewest bits
    that hold them.

    Args:
        values: finite, 0 or greater, of any shape.
        bits: 8, 16 or 32; ignored for integers.

    Returns:
        A JSON-serializable record with `shape`, `bits`, `scale` and base64 `data`.

    Raises:
        RegardError: if a value is negative or not finite, or there is no such number of bits.

    Example:
        >>> record = quantize(np.array([0.0, 0.5, 1.0]), bits=8)
        >>> dequantize(record, "weights").round(2).tolist()
        [0.0, 0.5, 1.0]
    """
    if values.size and not (np.isfinite(values).all() and values.min() >= 0):
        raise RegardError("values must be finite and 0 or greater, but one is not")
    if bits not in _DTYPES:
        raise RegardError(f"bits must be 8, 16 or 32, but it is {bits}")
    largest = float(values.max(initial=0))
    if np.issubdtype(values.dtype, np.integer):
        bits, scale = next(b for b in _DTYPES if largest < 2**b), 1.0
    else:
        scale = largest / (2**bits - 1) or 1.0
    integers = np.rint(values / scale).astype(_DTYPES[bits])
    return {
        "shape": list(values.shape),
        "bits": bits,
        "scale": scale,
        "data": base64.b64encode(integers.tobytes()).decode("ascii"),
    }


def dequantize(record: Any, name: str, as_integers: bool = False) -> Array:
    """Decode what `quantize` returned.

    Args:
        record: the record; it is validated, since it usually comes from a file.
        name: what to call it in error messages.
        as_integers: return int64 instead of float32.

    Raises:
        RegardError: if the record is malformed.

    Example:
        >>> dequantize(quantize(np.array([3, 250])), "keys", as_integers=True).tolist()
        [3, 250]
    """
    try:
        shape, bits, scale = tuple(record["shape"]), record["bits"], float(record["scale"])
        data = base64.b64decode(record["data"], validate=True)
        known = bits in _DTYPES
    except (TypeError, KeyError, ValueError, OverflowError) as error:
        raise RegardError(f"{name} must be an array with shape, bits, scale and data") from error
    is_shape = len(shape) <= MAX_AXES and all(type(size) is int and size >= 0 for size in shape)
    if not known or not is_shape:
        raise RegardError(
            f"{name} must have 8, 16 or 32 bits and a shape of at most {MAX_AXES} axes, not "
            f"{shorten(bits)}, {shorten(shape)}"
        )
    if not 0 < scale <= _MAX_FLOAT32 / 2**bits:
        raise RegardError(f"{name} must have a scale above 0 that fits float32, not {scale!r}")
    expected = math.prod(shape) * bits // 8
    if len(data) != expected:
        raise RegardError(f"{name} of shape {shape} must have {expected} bytes, not {len(data)}")
    integers = np.frombuffer(data, _DTYPES[bits]).reshape(shape)
    if as_integers:
        return integers.astype(np.int64)
    return np.asarray(integers * scale, dtype=np.float32)
