"""Run folders: settings, tokenizers, parameters and checkpoints on disk, and a loaded run."""

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
