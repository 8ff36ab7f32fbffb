"""Attention you can use, train and see."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from regard import analysis as analysis
    from regard import attention as attention
    from regard import capture as capture
    from regard import config as config
    from regard import data as data
    from regard import decoding as decoding
    from regard import evaluation as evaluation
    from regard import interventions as interventions
    from regard import masks as masks
    from regard import models as models
    from regard import positions as positions
    from regard import presets as presets
    from regard import runs as runs
    from regard import trace as trace
    from regard import training as training
    from regard import viz as viz
    from regard.attention import Additive as Additive
    from regard.attention import AttentionOutput as AttentionOutput
    from regard.attention import Bilinear as Bilinear
    from regard.attention import Cosine as Cosine
    from regard.attention import Dot as Dot
    from regard.attention import Gaussian as Gaussian
    from regard.attention import Kernel as Kernel
    from regard.attention import KeyValues as KeyValues
    from regard.attention import KVCache as KVCache
    from regard.attention import MultiHeadAttention as MultiHeadAttention
    from regard.attention import NadarayaWatson as NadarayaWatson
    from regard.attention import ScaledDot as ScaledDot
    from regard.attention import attend as attend
    from regard.attention import look as look
    from regard.attention import weights as weights
    from regard.capture import Capture as Capture
    from regard.capture import recover_weights as recover_weights
    from regard.capture import trace_hf as trace_hf
    from regard.capture import watch as watch
    from regard.config import DataConfig as DataConfig
    from regard.config import ModelConfig as ModelConfig
    from regard.config import RunConfig as RunConfig
    from regard.config import SearchConfig as SearchConfig
    from regard.config import TrainConfig as TrainConfig
    from regard.decoding import Hypothesis as Hypothesis
    from regard.decoding import Translation as Translation
    from regard.errors import RegardError as RegardError
    from regard.evaluation import EvaluationReport as EvaluationReport
    from regard.interventions import edit as edit
    from regard.runs import Run as Run
    from regard.runs import load as load
    from regard.trace import AttentionMap as AttentionMap
    from regard.trace import Trace as Trace
    from regard.trace import load_trace as load_trace
    from regard.training import Callback as Callback
    from regard.training import train as train
    from regard.viz import show as show

# Resolved on first use: importing torch takes seconds, and `regard --help` needs none of it.
_SUBPACKAGES = (
    "analysis",
    "attention",
    "capture",
    "config",
    "data",
    "decoding",
    "evaluation",
    "interventions",
    "masks",
    "models",
    "positions",
    "presets",
    "runs",
    "trace",
    "training",
    "viz",
)
_EXPORTS = {
    "Additive": "regard.attention",
    "AttentionMap": "regard.trace",
    "AttentionOutput": "regard.attention",
    "Bilinear": "regard.attention",
    "Callback": "regard.training",
    "Capture": "regard.capture",
    "Cosine": "regard.attention",
    "DataConfig": "regard.config",
    "Dot": "regard.attention",
    "EvaluationReport": "regard.evaluation",
    "Gaussian": "regard.attention",
    "Hypothesis": "regard.decoding",
    "KVCache": "regard.attention",
    "Kernel": "regard.attention",
    "KeyValues": "regard.attention",
    "ModelConfig": "regard.config",
    "MultiHeadAttention": "regard.attention",
    "NadarayaWatson": "regard.attention",
    "RegardError": "regard.errors",
    "Run": "regard.runs",
    "RunConfig": "regard.config",
    "ScaledDot": "regard.attention",
    "SearchConfig": "regard.config",
    "Trace": "regard.trace",
    "TrainConfig": "regard.config",
    "Translation": "regard.decoding",
    "attend": "regard.attention",
    "edit": "regard.interventions",
    "load": "regard.runs",
    "load_trace": "regard.trace",
    "look": "regard.attention",
    "recover_weights": "regard.capture",
    "show": "regard.viz",
    "trace_hf": "regard.capture",
    "train": "regard.training",
    "watch": "regard.capture",
    "weights": "regard.attention",
}

__all__ = ["__version__", *_SUBPACKAGES, *_EXPORTS]


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return import_module(f"regard.{name}")
    if name not in _EXPORTS:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_EXPORTS[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBPACKAGES, *_EXPORTS})
