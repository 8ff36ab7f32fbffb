"""The runs that were named at start: the only ones that can be reached, loaded when needed."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import torch

from regard.data import Tokenizers
from regard.errors import RegardError
from regard.explorer.errors import Refused
from regard.explorer.training_log import last_step
from regard.models import build
from regard.runs import Run, RunFolder, load
from regard.training.checkpoint import Checkpoints

LOADED = 6  # models kept in memory: the latest that were asked for
FINAL = "final"

Signature = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Weights that a run had at a step."""

    id: str
    step: int
    path: Path


class Shelf:
    """Run folders by name; what is loaded is loaded anew when its files were rewritten."""

    def __init__(self, paths: Sequence[Path]) -> None:
        names = distinct(path.resolve().name for path in paths)
        self._folders = {name: RunFolder(path) for name, path in zip(names, paths, strict=True)}
        self._loaded: OrderedDict[tuple[str, Path], tuple[Signature, Run]] = OrderedDict()
        self._facts: dict[str, tuple[Signature, dict[str, Any]]] = {}
        self._loading, self._reading = Lock(), Lock()
        for name in names:
            self._facts[name] = _signature(self._folders[name]), self._read_facts(name)

    @property
    def names(self) -> list[str]:
        """The names of the runs, in the order they were given."""
        return list(self._folders)

    def folder(self, name: str) -> RunFolder:
        """Give the folder of a run that was named at start, if it is still there."""
        if name not in self._folders:
            known = ", ".join(map(repr, self._folders)) or "none"
            raise Refused(404, f"no run is called {name!r}; the runs named at start: {known}")
        folder = self._folders[name]
        if not folder.path.is_dir():
            raise Refused(404, f"the run {name!r} is no longer there: its folder was removed")
        return folder

    def facts(self, name: str) -> dict[str, Any]:
        """Tell what a run is; of one that was removed, what it was."""
        folder = self._folders[name]
        signature = _signature(folder)
        with self._reading:
            if self._facts[name][0] != signature:
                try:
                    self._facts[name] = signature, self._read_facts(name)
                except RegardError:  # removed, or just being rewritten
                    return self._facts[name][1] | {"ready": False}
            return self._facts[name][1]

    def run(self, name: str, checkpoint: str | None = None) -> Run:
        """Give a run, with the weights it ended with or with those of a checkpoint."""
        folder = self.folder(name)
        weights = folder.model if checkpoint is None else self._weights(name, checkpoint)
        signature = _signature(folder, weights)
        with self._loading:
            kept = self._loaded.get((name, weights))
            if kept is None or kept[0] != signature:
                kept = signature, self._load(name, folder, weights)
            self._loaded[name, weights] = kept
            self._loaded.move_to_end((name, weights))
            while len(self._loaded) > LOADED:
                self._loaded.popitem(last=False)
            return kept[1]

    def checkpoints(self, name: str) -> list[Checkpoint]:
        """List the weights that a run has kept, in order of steps; the final ones come last."""
        folder = self.folder(name)
        states = Checkpoints(folder.checkpoints)
        found = {step: states.parameters_path(step) for step in states.parameter_steps()}
        found |= folder.snapshots
        kept = [Checkpoint(f"step-{step}", step, found[step]) for step in sorted(found)]
        if folder.model.exists():
            last = max([last_step(folder), *found])
            kept.append(Checkpoint(FINAL, last, folder.model))
        return kept

    def phrasebook(self, name: str) -> str | None:
        """Tell which language of the phrasebook a run learned, if it learned from it."""
        language: str | None = self.facts(name)["phrasebook"]
        return language

    def _weights(self, name: str, checkpoint: str) -> Path:
        for kept in self.checkpoints(name):
            if kept.id == checkpoint:
                return kept.path
        raise Refused(404, f"the run {name!r} has no checkpoint {checkpoint!r}")

    def _load(self, name: str, folder: RunFolder, weights: Path) -> Run:
        try:
            return load(folder.path, weights=weights)
        except RegardError as problem:
            raise Refused(404, f"the run {name!r} cannot be read now: {problem}") from problem

    def _read_facts(self, name: str) -> dict[str, Any]:
        folder = self._folders[name]
        settings, origin = folder.read_settings()
        model = settings.model
        return {
            "name": name,
            "kind": model.kind,
            "layers": model.layers,
            "heads": model.heads if model.kind == "transformer" else int(model.use_attention),
            "parameters": _parameters(folder),
            "beam_size": settings.search.beam_size,
            "phrasebook": _language(origin),
            "ready": folder.model.exists(),
        }


def distinct(names: Iterable[str]) -> list[str]:
    """Number names that come again: run, run-2, run-3; what cannot be written becomes a ?."""
    found: list[str] = []
    for name in names:
        plain = name.encode("utf-8", "replace").decode() or "run"
        name, number = plain, 1
        while name in found:
            number += 1
            name = f"{plain}-{number}"
        found.append(name)
    return found


def _parameters(folder: RunFolder) -> int:
    """Count the weights of a run, without reading them."""
    if not folder.tokenizer.exists():
        return 0
    with torch.device("meta"):
        model = build(
            folder.read_settings()[0].model, Tokenizers.load(folder.tokenizer).vocab_sizes
        )
    return sum(weight.numel() for weight in model.parameters())


def _language(origin: dict[str, Any]) -> str | None:
    """Return the language of the phrasebook that a run was trained on; None for other data."""
    dataset = origin.get("dataset")
    if not isinstance(dataset, dict) or dataset.get("name") != "phrasebook":
        return None
    return str(dataset["language"]) if dataset.get("language") in ("fr", "zh") else None


def _signature(folder: RunFolder, weights: Path | None = None) -> Signature:
    """Tell files from those of the same names that were written later."""
    return tuple(
        _stamp(path) for path in (folder.settings, folder.tokenizer, weights or folder.model)
    )


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
