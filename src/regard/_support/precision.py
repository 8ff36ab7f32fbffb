"""Floating-point precision: computing in float32 or more, whatever autocast is set to."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def no_autocast(tensor: Tensor) -> AbstractContextManager[object]:
    """Return a context in which autocast is disabled on the tensor's device."""
    device_type = tensor.device.type
    active = device_type != "meta" and torch.is_autocast_enabled(device_type)
    return torch.autocast(device_type, enabled=False) if active else nullcontext()


def upcast(tensor: Tensor) -> Tensor:
    """Convert half precision to float32: float16 rounds a score of 50 by up to 0.03."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def max_squarable(dtype: torch.dtype) -> float:
    """Return a limit of float32 or float64 below which squares can be summed without overflow."""
    return 2.0**480 if dtype == torch.float64 else 2.0**50
