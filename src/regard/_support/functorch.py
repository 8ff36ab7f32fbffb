"""Detection of `torch.func` transforms, under which in-place writes and some kernels fail."""

import torch
from torch import Tensor
from torch._C import _functorch
from torch.autograd import forward_ad


def in_functorch() -> bool:
    """Return whether a transform of `torch.func` is active: then nothing may be overwritten."""
    if torch.compiler.is_compiling():
        return False
    return _functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0


def in_vmap_or_jvp() -> bool:
    """Return whether a transform is active that fused kernels lack: `vmap` or forward-mode AD."""
    if not in_functorch():
        return False
    stack = _functorch.get_interpreter_stack() or ()
    is_other = any(level.key() != _functorch.TransformType.Grad for level in stack)
    return forward_ad._current_level >= 0 or is_other


def can_read_values(tensor: Tensor) -> bool:
    """Return whether Python may branch on the values of a tensor.

    It may not while a function is compiled, under a transform, and on the meta device.
    """
    return not (torch.compiler.is_compiling() or in_functorch() or tensor.is_meta)
