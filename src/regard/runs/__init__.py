"""Runs: the folder that training fills, and the translator loaded from it.

- `run` has `RunFolder`, the paths of a run's files, and `load`, which returns a `Run`: settings,
  tokenizers and model. settings.json carries a format version; others are refused.
- `parameters` saves, loads and averages parameters in safetensors files with a checksum.
- `tracing` records the attention of a translation in one teacher-forced pass.
"""

from regard.runs import parameters
from regard.runs.run import Run, RunFolder, load
from regard.runs.tracing import append_traces, assign_words, trace_translation

__all__ = [
    "Run",
    "RunFolder",
    "append_traces",
    "assign_words",
    "load",
    "parameters",
    "trace_translation",
]
