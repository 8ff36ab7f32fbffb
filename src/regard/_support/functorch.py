"""What `torch.func` does to a computation: its transforms know plain steps, not every kernel."""

import torch
from torch._C import _functorch
from torch.autograd import forward_ad


def in_functorch() -> bool:
    """Tell whether a transform is at work: then nothing may be written over."""
    if torch.compiler.is_compiling():
        return False
    return _functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0


def in_vmap_or_jvp() -> bool:
    """Tell whether there is one that fused kernels do not know: `vmap`, forward derivatives."""
    if not in_functorch():
        return False
    stack = _functorch.get_interpreter_stack() or ()
    known = _functorch.TransformType.Grad
    return forward_ad._current_level >= 0 or any(each.key() != known for each in stack)
