"""Runs: the folder that training fills, and the translator loaded from it.

- `folder` has `RunFolder`, the paths of a run's files. settings.json carries a format version;
  others are refused. It also has the id of the run, which every other file names: a file with a
  changed bit is refused by its checksum, and one from another run by this id.
- `loading` has `load`, which returns a `Run`, and the fingerprint by which servers notice that a
  run has changed.
- `run` has `Run`: settings, tokenizers and model, and what is done with them: `translate`, `trace`
  and `evaluate`. `arguments` checks what these methods receive.
- `pretrained/demo-model` is a run that the package ships; `tools/demo_model.py` made it.
- `engines` chooses the engine that translates, and keeps the model that was converted for it.
  `export` writes a run for programs that do not use regard.
- `parameters` saves, loads and averages parameters in safetensors files with a checksum. `log` is
  the format of the training log, a checksum on every line.
- `tracing` records the attention of a translation in one teacher-forced pass; `evaluation`
  measures a model on a test set. `tasks` has the parts of both, and of translation, that threads
  and processes share. `training_words` tells which words of a text a model was not trained with.
"""

from regard.runs import log, parameters
from regard.runs.engines import ENGINES, check_engine, describe_engine
from regard.runs.export import (
    FORMATS,
    export_ctranslate2,
    export_html,
    export_onnx,
    export_run,
)
from regard.runs.folder import DEMO_MODEL, RunFolder, files_by_step, find_run
from regard.runs.loading import Fingerprint, fingerprint_run, load
from regard.runs.run import Run
from regard.runs.tasks import RunTasks, empty_trace, read_translations, translation_items
from regard.runs.tracing import assign_words, trace_translation
from regard.runs.training_words import find_unseen_words, load_training_words

__all__ = [
    "DEMO_MODEL",
    "ENGINES",
    "FORMATS",
    "Fingerprint",
    "Run",
    "RunFolder",
    "RunTasks",
    "assign_words",
    "check_engine",
    "describe_engine",
    "empty_trace",
    "export_ctranslate2",
    "export_html",
    "export_onnx",
    "export_run",
    "files_by_step",
    "find_run",
    "find_unseen_words",
    "fingerprint_run",
    "load",
    "load_training_words",
    "log",
    "parameters",
    "read_translations",
    "trace_translation",
    "translation_items",
]
