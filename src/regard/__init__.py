"""Attention you can use, train and see."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from regard import attention as attention
    from regard import insight as insight
    from regard import masks as masks
    from regard import models as models
    from regard import pictures as pictures
    from regard import positions as positions
    from regard import search as search
    from regard import trace as trace
    from regard.attention import Additive as Additive
    from regard.attention import Bilinear as Bilinear
    from regard.attention import Cosine as Cosine
    from regard.attention import Dot as Dot
    from regard.attention import Gaussian as Gaussian
    from regard.attention import Kernel as Kernel
    from regard.attention import Looked as Looked
    from regard.attention import ScaledDot as ScaledDot
    from regard.attention import attend as attend
    from regard.attention import look as look
    from regard.attention import weights as weights
    from regard.attention.memory import Cache as Cache
    from regard.attention.memory import Memory as Memory
    from regard.attention.multihead import MultiHead as MultiHead
    from regard.attention.regression import NadarayaWatson as NadarayaWatson
    from regard.errors import RegardError as RegardError
    from regard.pictures import show as show
    from regard.trace import Trace as Trace
    from regard.trace import load_trace as load_trace
    from regard.watching import probe as probe
    from regard.watching import watch as watch

# Names are looked up when they are first used: torch takes seconds to import, and
# `regard --help` needs none of it.
_ROOMS = ("attention", "insight", "masks", "models", "pictures", "positions", "search", "trace")
_NAMES = {
    "Additive": "regard.attention",
    "Bilinear": "regard.attention",
    "Cache": "regard.attention.memory",
    "Cosine": "regard.attention",
    "Dot": "regard.attention",
    "Gaussian": "regard.attention",
    "Kernel": "regard.attention",
    "Looked": "regard.attention",
    "Memory": "regard.attention.memory",
    "MultiHead": "regard.attention.multihead",
    "NadarayaWatson": "regard.attention.regression",
    "RegardError": "regard.errors",
    "ScaledDot": "regard.attention",
    "Trace": "regard.trace",
    "attend": "regard.attention",
    "load_trace": "regard.trace",
    "look": "regard.attention",
    "probe": "regard.watching",
    "show": "regard.pictures",
    "watch": "regard.watching",
    "weights": "regard.attention",
}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"regard.{name}")
    if name not in _NAMES:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_NAMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_ROOMS, *_NAMES})
