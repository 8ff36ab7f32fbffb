"""A run folder: settings, tokenizer, weights, log, checkpoints and a card, made to last."""

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from regard import __version__
from regard._support import files
from regard.config import RunConfig
from regard.data import Tokenizers
from regard.errors import RegardError
from regard.models import Seq2SeqModel, build
from regard.runs import parameters

SECTIONS = ("data", "model", "train", "search")
FORMAT_VERSION = 1  # of settings.json and of the files beside it


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The paths within a run."""

    path: Path

    @property
    def settings(self) -> Path:
        """Every setting, defaults included, and where the run comes from."""
        return self.path / "settings.json"

    @property
    def tokenizer(self) -> Path:
        """Both vocabularies."""
        return self.path / "tokenizer.json"

    @property
    def model(self) -> Path:
        """The weights to translate with."""
        return self.path / "model.safetensors"

    @property
    def log(self) -> Path:
        """One JSON object per line: steps and validations."""
        return self.path / "log.jsonl"

    @property
    def checkpoints(self) -> Path:
        """What a killed run goes on from."""
        return self.path / "checkpoints"

    @property
    def snapshots(self) -> dict[int, Path]:
        """The weights kept along the way, by step, first to last."""
        named = re.compile(r"step-(\d+)\.safetensors")
        found = ((named.fullmatch(path.name), path) for path in self._snapshots.glob("*"))
        return dict(sorted((int(match[1]), path) for match, path in found if match))

    @property
    def _snapshots(self) -> Path:
        return self.path / "snapshots"

    def snapshot(self, step: int) -> Path:
        """Name the weights of a step that are kept to be looked at."""
        return self._snapshots / f"step-{step}.safetensors"

    @property
    def data(self) -> Path:
        """The pairs, encoded."""
        return self.path / "data"

    @property
    def model_card(self) -> Path:
        """What this run is, for a person who finds it."""
        return self.path / "README.md"

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing yet, but for settings that a killed process did not finish."""
        if not self.path.exists():
            return True
        ours = {self.settings.name}
        return self.path.is_dir() and {files.temp_target(p) for p in self.path.iterdir()} <= ours

    def remove_temps(self) -> None:
        """Remove what a killed process did not finish."""
        for place in (self.path, self._snapshots):
            files.remove_temps(place)

    @property
    def has_parameters(self) -> bool:
        """Whether there is something that a new start would lose."""
        return any(path.exists() for path in (self.model, self.checkpoints, self.model_card))

    def clear(self) -> None:
        """Remove what was prepared, so that something else can be."""
        for path in (self.data, self._snapshots):
            shutil.rmtree(path, ignore_errors=True)
        for path in (self.tokenizer, self.log):
            path.unlink(missing_ok=True)

    def write_settings(self, settings: RunConfig, origin: Mapping[str, Any]) -> None:
        """Write the settings, and which texts they were for."""
        content = {
            "format_version": FORMAT_VERSION,
            "regard": __version__,
            "origin": dict(origin),
            **asdict(settings),
        }
        files.write_file(self.settings, json.dumps(content, indent=2, ensure_ascii=False) + "\n")

    def read_settings(self) -> tuple[RunConfig, dict[str, Any]]:
        """Give the settings, and which texts they were for."""
        try:
            content = json.loads(self.settings.read_text(encoding="utf-8"))
            _check_version(self.settings, content)
            sections = {name: content[name] for name in SECTIONS}
            return RunConfig.from_dict(sections), _origin(content)
        except OSError as problem:
            raise RegardError(
                f"{self.path} is not a run: it has no settings.json; "
                f"`regard train PAIRS --out {self.path}` would make one"
            ) from problem
        except RegardError:
            raise
        except (ValueError, KeyError, TypeError) as problem:
            raise RegardError(f"{self.settings} is damaged: {problem}") from problem


def _check_version(path: Path, content: Mapping[str, Any]) -> None:
    """Refuse a run that an older or newer version of regard wrote."""
    version = content.get("format_version", 0)
    if version != FORMAT_VERSION:
        raise RegardError(
            f"{path} has format version {version!r}, but this version of regard reads version "
            f"{FORMAT_VERSION}; train the run again, or use the version of regard that wrote it"
        )


def _origin(content: Mapping[str, Any]) -> dict[str, Any]:
    origin = content["origin"]
    texts = origin.get("texts") if isinstance(origin, dict) else None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"origin must name a list of texts, but it is {origin!r}")
    return dict(origin)


@dataclass(frozen=True, slots=True)
class Run:
    """A trained translator, ready to use."""

    folder: RunFolder
    settings: RunConfig
    tokenizers: Tokenizers
    model: Seq2SeqModel

    @property
    def name(self) -> str:
        """What to call it in a caption."""
        return self.folder.path.resolve().name


def load(path: Path, device: str | torch.device = "cpu", weights: Path | None = None) -> Run:
    """Load a run, with the weights it ended with or with those of a checkpoint."""
    folder = RunFolder(Path(path))
    settings, _ = folder.read_settings()
    tokenizers = Tokenizers.load(folder.tokenizer)
    weights = folder.model if weights is None else weights
    if not weights.exists():
        raise RegardError(
            f"{path} has no weights yet: they come with the first validation. "
            "`regard train` with the same arguments goes on"
        )
    model = build(settings.model, tokenizers.vocab_sizes)
    parameters.load_into(model, parameters.load(weights)[0], weights)
    return Run(folder, settings, tokenizers, model.to(device).eval())
