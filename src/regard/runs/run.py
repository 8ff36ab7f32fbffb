"""Run folders on disk, and a loaded run: settings, tokenizers and a model ready to translate."""

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
    """The files of a run, by path.

    Example:
        >>> RunFolder(Path("demo")).settings.as_posix()
        'demo/settings.json'
    """

    path: Path

    @property
    def settings(self) -> Path:
        """All settings, defaults included, and the origin of the data."""
        return self.path / "settings.json"

    @property
    def tokenizer(self) -> Path:
        """Both tokenizers."""
        return self.path / "tokenizer.json"

    @property
    def model(self) -> Path:
        """The parameters to translate with."""
        return self.path / "model.safetensors"

    @property
    def log(self) -> Path:
        """The training log: a JSON object per line, for steps and validations."""
        return self.path / "log.jsonl"

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints, from which training resumes."""
        return self.path / "checkpoints"

    @property
    def snapshots(self) -> dict[int, Path]:
        """The parameters saved during training for later inspection, by step in rising order."""
        pattern = re.compile(r"step-(\d+)\.safetensors")
        matches = ((pattern.fullmatch(path.name), path) for path in self._snapshots.glob("*"))
        return dict(sorted((int(match[1]), path) for match, path in matches if match))

    def snapshot(self, step: int) -> Path:
        """Return the path of the snapshot of a step."""
        return self._snapshots / f"step-{step}.safetensors"

    @property
    def _snapshots(self) -> Path:
        return self.path / "snapshots"

    @property
    def data(self) -> Path:
        """The folder of encoded pairs."""
        return self.path / "data"

    @property
    def model_card(self) -> Path:
        """The model card; written last, so a run that has one is finished."""
        return self.path / "README.md"

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing, or only settings whose writing was interrupted."""
        if not self.path.exists():
            return True
        if not self.path.is_dir():
            return False
        return {files.temp_target(path) for path in self.path.iterdir()} <= {self.settings.name}

    @property
    def has_parameters(self) -> bool:
        """Whether there are trained parameters, which a new start would lose."""
        return any(path.exists() for path in (self.model, self.checkpoints, self.model_card))

    def remove_temps(self) -> None:
        """Remove the temporary files of a killed process."""
        for folder in (self.path, self._snapshots):
            files.remove_temps(folder)

    def clear(self) -> None:
        """Remove encoded pairs, snapshots, tokenizers and log, to prepare other data."""
        for folder in (self.data, self._snapshots):
            shutil.rmtree(folder, ignore_errors=True)
        for path in (self.tokenizer, self.log):
            path.unlink(missing_ok=True)

    def write_settings(self, settings: RunConfig, origin: Mapping[str, Any]) -> None:
        """Write the settings and the origin of the data: `texts`, `fingerprints`, `dataset`, …"""
        content = {
            "format_version": FORMAT_VERSION,
            "regard": __version__,
            "origin": dict(origin),
            **asdict(settings),
        }
        files.write_file(self.settings, json.dumps(content, indent=2, ensure_ascii=False) + "\n")

    def read_settings(self) -> tuple[RunConfig, dict[str, Any]]:
        """Return the settings and the origin of the data.

        Raises:
            RegardError: if the folder is not a run, the settings are damaged, or their format
                version is another one.
        """
        try:
            content = json.loads(self.settings.read_text(encoding="utf-8"))
            _check_version(self.settings, content)
            sections = {name: content[name] for name in SECTIONS}
            return RunConfig.from_dict(sections), _origin(content)
        except OSError as error:
            raise RegardError(
                f"{self.path} is not a run: it has no settings.json; "
                f"`regard train PAIRS --out {self.path}` creates one"
            ) from error
        except RegardError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RegardError(f"{self.settings} is damaged: {error}") from error


def _check_version(path: Path, content: Mapping[str, Any]) -> None:
    """Raise RegardError for a run of an older or newer format."""
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
        raise ValueError(f"origin must have a list of texts, but it is {origin!r}")
    return dict(origin)


@dataclass(frozen=True, slots=True)
class Run:
    """A trained translator: where it is, its settings, tokenizers and model."""

    folder: RunFolder
    settings: RunConfig
    tokenizers: Tokenizers
    model: Seq2SeqModel

    @property
    def name(self) -> str:
        """Name of the folder, for captions."""
        return self.folder.path.resolve().name


def load(
    path: str | Path, device: str | torch.device = "cpu", checkpoint: Path | None = None
) -> Run:
    """Load a run.

    Args:
        path: the run folder.
        device: where the model is put.
        checkpoint: parameters to load instead of the final ones, such as one of
            `RunFolder.snapshots`.

    Returns:
        The run, its model in evaluation mode.

    Raises:
        RegardError: if the folder is not a run, has no parameters yet, or a file is damaged.
    """
    folder = RunFolder(Path(path))
    settings, _ = folder.read_settings()
    tokenizers = Tokenizers.load(folder.tokenizer)
    checkpoint = folder.model if checkpoint is None else checkpoint
    if not checkpoint.exists():
        raise RegardError(
            f"{path} has no parameters yet: the first validation saves some. "
            "Run the same `regard train` command to resume"
        )
    model = build(settings.model, tokenizers.vocab_sizes)
    parameters.load_into(model, parameters.load(checkpoint)[0], checkpoint)
    return Run(folder, settings, tokenizers, model.to(device).eval())
