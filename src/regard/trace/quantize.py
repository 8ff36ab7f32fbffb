"""Arrays as text: unsigned integers in base64, with a scale."""

import base64
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_TYPES = {8: "<u1", 16: "<u2", 32: "<u4"}
_MOST = float(np.finfo(np.float32).max)


def array(numbers: Any) -> Array:
    """Take a tensor of any device and precision, an array or nested lists as float32."""
    if hasattr(numbers, "detach"):
        numbers = numbers.detach().float().cpu().numpy()
    return np.asarray(numbers, dtype=np.float32)


def pack(numbers: Array, bits: int = 16) -> dict[str, Any]:
    """Write numbers of 0 and more, rounded to the largest / 2^bits; integers stay exact."""
    if numbers.size and not (np.isfinite(numbers).all() and numbers.min() >= 0):
        raise ValueError("numbers of a trace must be finite and 0 or more, but one is not")
    most = float(numbers.max(initial=0))
    if np.issubdtype(numbers.dtype, np.integer):
        bits, scale = next(b for b in _TYPES if most < 2**b), 1.0
    else:
        scale = most / (2**bits - 1) or 1.0
    whole = np.rint(numbers / scale).astype(_TYPES[bits])
    return {
        "shape": list(numbers.shape),
        "bits": bits,
        "scale": scale,
        "data": base64.b64encode(whole.tobytes()).decode("ascii"),
    }


def unpack(packed: Any, name: str, whole: bool = False) -> Array:
    """Read numbers that `pack` wrote, as float32, or as whole numbers."""
    try:
        shape, bits, scale = tuple(packed["shape"]), packed["bits"], float(packed["scale"])
        data = base64.b64decode(packed["data"], validate=True)
        known = bits in _TYPES
    except (TypeError, KeyError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be numbers with shape, bits, scale and data") from error
    if not known or not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(f"{name} must have 8, 16 or 32 bits and a shape, not {bits!r}, {shape!r}")
    if not 0 < scale <= _MOST / 2**bits:
        raise ValueError(f"{name} must have a scale above 0 that float32 can hold, not {scale!r}")
    wanted = math.prod(shape) * bits // 8
    if len(data) != wanted:
        raise ValueError(
            f"{name} of shape {shape} must hold {wanted} bytes, but it holds {len(data)}"
        )
    integers = np.frombuffer(data, _TYPES[bits]).reshape(shape)
    return integers.astype(np.int64) if whole else np.asarray(integers * scale, dtype=np.float32)
