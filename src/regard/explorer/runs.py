"""Registry of the served runs: only runs named at start can be reached; models load on demand."""

import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import torch
from starlette.exceptions import HTTPException

from regard.data import Tokenizers
from regard.data.phrasebook import phrasebook_language
from regard.errors import RegardError
from regard.explorer.training_log import last_step
from regard.explorer.workers import NUM_WORKERS
from regard.models import count_parameters
from regard.runs import (
    Fingerprint,
    Run,
    RunFolder,
    check_engine,
    find_run,
    fingerprint_run,
    load,
)
from regard.training import Checkpoints

MAX_LOADED_MODELS = 6  # in memory: the most recently used ones
FINAL = "final"


@dataclass(frozen=True, slots=True)
class RunCheckpoint:
    """Parameters of a run at a training step."""

    id: str
    step: int
    path: Path


class RunRegistry:
    """Run folders by name, with an LRU cache of models that reloads files that have changed.

    Args:
        paths: the run folders; their names are made unique.
        max_loaded_models: size of the cache.
        engine: what translates; see `load`.
        quantization: of CTranslate2; see `load`.
        on_load: called with the name of a run and the run when it is loaded.

    Raises:
        RegardError: if a folder is not a run, or there is no such engine or quantization.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        max_loaded_models: int = MAX_LOADED_MODELS,
        engine: str = "auto",
        quantization: str | None = None,
        on_load: Callable[[str, Run], None] | None = None,
    ) -> None:
        check_engine(engine, quantization)
        self._engine, self._quantization, self._on_load = engine, quantization, on_load
        paths = [find_run(path) for path in paths]
        names = unique_names(Path(os.path.realpath(path)).name for path in paths)
        self._folders = {name: RunFolder(path) for name, path in zip(names, paths, strict=True)}
        self._max_loaded_models = max_loaded_models
        self._loaded: OrderedDict[tuple[str, Path], tuple[Fingerprint, Run]] = OrderedDict()
        self._infos: dict[str, tuple[Fingerprint, dict[str, Any]]] = {}
        self._load_lock, self._info_lock = Lock(), Lock()
        for name in names:
            self._infos[name] = fingerprint_run(self._folders[name]), self._read_info(name)

    @property
    def names(self) -> list[str]:
        """Names of the runs, in the order of the paths."""
        return list(self._folders)

    def folder(self, name: str) -> RunFolder:
        """Return the folder of a run, or raise 404."""
        if name not in self._folders:
            known = ", ".join(map(repr, self._folders)) or "none"
            raise HTTPException(404, f"no run is named {name!r}; available: {known}")
        folder = self._folders[name]
        if not folder.path.is_dir():
            raise HTTPException(404, f"the run {name!r} is gone: its folder was removed")
        return folder

    def info(self, name: str) -> dict[str, Any]:
        """Return a summary of a run; of one that cannot be read now, the last known one."""
        fingerprint = fingerprint_run(self._folders[name])
        with self._info_lock:
            if self._infos[name][0] != fingerprint:
                try:
                    self._infos[name] = fingerprint, self._read_info(name)
                except RegardError:  # removed, or just being rewritten
                    return self._infos[name][1] | {"ready": False}
            return self._infos[name][1]

    def load(self, name: str, checkpoint: str | None = None) -> Run:
        """Return a run with its final parameters or with those of a checkpoint."""
        folder = self.folder(name)
        path = folder.model if checkpoint is None else self._checkpoint_path(name, checkpoint)
        fingerprint = fingerprint_run(folder, path)
        with self._load_lock:
            entry = self._loaded.get((name, path))
            if entry is None or entry[0] != fingerprint:
                entry = fingerprint, self._load_run(name, folder, path)
            self._loaded[name, path] = entry
            self._loaded.move_to_end((name, path))
            while len(self._loaded) > self._max_loaded_models:
                self._loaded.popitem(last=False)
            return entry[1]

    def checkpoints(self, name: str) -> list[RunCheckpoint]:
        """Return the checkpoints of a run in order of steps, the final parameters last."""
        folder = self.folder(name)
        saved = Checkpoints(folder.checkpoints)
        paths = {step: saved.parameters_path(step) for step in saved.parameter_steps()}
        paths |= folder.snapshots
        checkpoints = [RunCheckpoint(f"step-{step}", step, paths[step]) for step in sorted(paths)]
        if folder.model.exists():
            step = max([last_step(folder), *paths])
            checkpoints.append(RunCheckpoint(FINAL, step, folder.model))
        return checkpoints

    def phrasebook(self, name: str) -> str | None:
        """Return the target language of a run that was trained on the phrasebook, else None."""
        language: str | None = self.info(name)["phrasebook"]
        return language

    def _load_run(self, name: str, folder: RunFolder, path: Path) -> Run:
        checkpoint = None if path == folder.model else path
        threads = torch.get_num_threads()
        torch.set_num_threads(NUM_WORKERS)  # of which CTranslate2 starts as many
        try:
            run = load(
                folder.path,
                checkpoint=checkpoint,
                engine=self._engine,
                quantization=self._quantization,
            )
        except RegardError as error:
            message = f"the run {name!r} cannot be read at the moment: {error}"
            raise HTTPException(404, message) from error
        finally:
            torch.set_num_threads(threads)
        if self._on_load is not None:
            self._on_load(name, run)
        return run

    def _checkpoint_path(self, name: str, checkpoint: str) -> Path:
        for candidate in self.checkpoints(name):
            if candidate.id == checkpoint:
                return candidate.path
        raise HTTPException(404, f"the run {name!r} has no checkpoint {checkpoint!r}")

    def _read_info(self, name: str) -> dict[str, Any]:
        folder = self._folders[name]
        settings, origin = folder.read_settings()
        model = settings.model
        return {
            "name": name,
            "kind": model.kind,
            "layers": model.layers,
            "heads": model.heads if model.kind == "transformer" else int(model.use_attention),
            "parameters": _count_parameters(folder),
            "beam_size": settings.search.beam_size,
            "phrasebook": phrasebook_language(origin.get("dataset")),
            "ready": folder.model.exists(),
        }


def unique_names(names: Iterable[str]) -> list[str]:
    """Number repeated names (run, run-2, run-3) and replace what UTF-8 cannot encode by `?`."""
    unique: list[str] = []
    for name in names:
        base = name.encode("utf-8", "replace").decode() or "run"
        candidate, number = base, 1
        while candidate in unique:
            number += 1
            candidate = f"{base}-{number}"
        unique.append(candidate)
    return unique


def _count_parameters(folder: RunFolder) -> int:
    """Return the number of a model's parameters without reading them; 0 without a tokenizer."""
    if not folder.tokenizer.exists():
        return 0
    vocab_sizes = Tokenizers.load(folder.tokenizer).vocab_sizes
    return count_parameters(folder.read_settings()[0].model, vocab_sizes)
