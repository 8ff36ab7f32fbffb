"""Looking aside: what a watcher computes for itself, and nobody notices."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch

try:  # private names of torch; without them, other modes see what is computed aside
    from torch._C import _len_torch_dispatch_stack as _modes
    from torch._ops import _len_torch_dispatch_stack_pre_dispatch as _early_modes
    from torch.utils._python_dispatch import _disable_current_modes as _without_modes
except ImportError:  # pragma: no cover
    _modes, _early_modes, _without_modes = int, int, nullcontext  # type: ignore[assignment]

_thread = threading.local()


def looks_aside() -> bool:
    """Tell whether any watcher of this thread is computing for itself."""
    return getattr(_thread, "aside", False)


@contextmanager
def aside() -> Iterator[None]:
    """Compute without gradients, seen by no watcher, counted or recorded by no mode of torch."""
    before = looks_aside()
    _thread.aside = True
    try:
        with torch.no_grad(), _unrecorded():
            yield
    finally:
        _thread.aside = before


def _unrecorded() -> AbstractContextManager[Any]:
    """Leave the modes that checkpoint, export or count; to ask whether there are any is cheap."""
    return _without_modes() if _modes() or _early_modes() else nullcontext()
