"""Modes of torch that change or forbid operations (transforms, autocast), and precision."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor
from torch._C import _functorch, _get_dispatch_mode, _TorchDispatchModeKey
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd import forward_ad

# what records operations, or runs them on fake tensors, instead of computing values
_TRACING_MODES = (_TorchDispatchModeKey.FAKE, _TorchDispatchModeKey.PROXY)


def no_autocast(tensor: Tensor) -> AbstractContextManager[object]:
    """Return a context in which autocast is disabled on the tensor's device."""
    device_type = tensor.device.type
    active = device_type != "meta" and torch.is_autocast_enabled(device_type)
    return torch.autocast(device_type, enabled=False) if active else nullcontext()


def upcast(tensor: Tensor) -> Tensor:
    """Convert half precision to float32: float16 rounds a score of 50 by up to 0.03."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def has_float64(device: torch.device) -> bool:
    """Return whether a device is known to have float64: Apple's and some of Intel's GPUs do not."""
    return device.type in ("cpu", "cuda", "meta")


def to_float64(tensor: Tensor) -> Tensor:
    """Return a tensor in float64: on its own device, or on the CPU if that has no float64."""
    return tensor.double() if has_float64(tensor.device) else tensor.cpu().double()


def max_squarable(dtype: torch.dtype) -> float:
    """Return a limit of float32 or float64 below which squares can be summed without overflow."""
    return 2.0**480 if dtype == torch.float64 else 2.0**50


def in_functorch() -> bool:
    """Return whether a transform of `torch.func` is active: then nothing may be overwritten."""
    if torch.compiler.is_compiling():
        return False
    return _functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0


def in_vmap_or_jvp() -> bool:
    """Return whether a transform is active that hides values: `vmap` or forward-mode AD."""
    is_other = any(key != _functorch.TransformType.Grad for key in _transforms())
    return is_other or (in_functorch() and forward_ad._current_level >= 0)


def in_transform_beyond_kernels() -> bool:
    """Return whether a transform is active that fused kernels lack.

    It is `vmap`, forward-mode AD, or the gradient of a gradient.
    """
    return in_vmap_or_jvp() or len(_transforms()) > 1


def _transforms() -> list[_functorch.TransformType]:
    """Return the kinds of the active transforms of `torch.func`."""
    if not in_functorch():
        return []
    return [level.key() for level in _functorch.get_interpreter_stack() or ()]


def is_traced(tensor: Tensor) -> bool:
    """Return whether a tensor is fake, or operations are being recorded: values are not real."""
    if isinstance(tensor, FakeTensor):
        return True
    if torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
        return True
    return any(_get_dispatch_mode(key) is not None for key in _TRACING_MODES)


def is_symbolic(size: int | torch.SymInt) -> bool:
    """Return whether a size is dynamic: a condition on it is kept, as a limit of the export."""
    return isinstance(size, torch.SymInt)


def can_read_values(tensor: Tensor) -> bool:
    """Return whether Python may branch on the values of a tensor.

    It may not while a function is compiled or traced, under a transform, on the meta device, and
    of fake tensors.
    """
    if torch.compiler.is_compiling() or in_functorch():
        return False
    return not (tensor.is_meta or is_traced(tensor))
