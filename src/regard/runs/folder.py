"""Run folders: the files of a run, by path, and its settings."""

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from regard import __version__
from regard._support import checksums, files
from regard._support.reading import read_bounded
from regard._support.strict_json import parse_object
from regard.config import SECTIONS, RunConfig
from regard.data import Tokenizers
from regard.errors import RegardError, wrong_type
from regard.runs import log, parameters

DEMO_MODEL = "demo-model"
"""Name of the run that the package ships: a small English-French Transformer."""
PRETRAINED = Path(__file__).parent / "pretrained"  # part of the package: not written to

FORMAT_VERSION = 2  # of settings.json and of the files beside it
RUN_ID_DIGITS = 32
MAX_SETTINGS_BYTES = 1 << 20

Parsed = TypeVar("Parsed")


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
        """The training log: a JSON object per line, for steps and validations; see `read_log`."""
        return self.path / "log.jsonl"

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints, from which training resumes."""
        return self.path / "checkpoints"

    @property
    def snapshots(self) -> dict[int, Path]:
        """The parameters saved during training for later inspection, by step in rising order."""
        return files_by_step(self._snapshots, "step")

    def snapshot(self, step: int) -> Path:
        """Return the path of the snapshot of a step."""
        return self._snapshots / f"step-{step}.safetensors"

    def find_parameters(self, checkpoint: int | str | Path | None = None) -> Path:
        """Return the file of the parameters of a checkpoint; see `load`.

        Raises:
            RegardError: if there are none, with the steps that have some.
        """
        if isinstance(checkpoint, Path):
            return checkpoint
        if checkpoint is None:
            if self.model.exists():
                return self.model
            raise RegardError(
                f"{self.path} has no parameters yet: the first validation saves some. "
                "Run the same `regard train` command to resume"
            )
        if checkpoint == "best":
            return self._best_parameters()
        if isinstance(checkpoint, str):
            raise RegardError(f"checkpoint must be 'best' or a step, but it is {checkpoint!r}")
        steps = self.snapshots | files_by_step(self.checkpoints, "parameters")
        if checkpoint not in steps:
            choices = (
                f"choose from {', '.join(map(str, sorted(steps)))}" if steps else "it has none"
            )
            raise RegardError(f"{self.path} has no parameters of step {checkpoint}; {choices}")
        return steps[checkpoint]

    def _best_parameters(self) -> Path:
        """Return the parameters of the best validation; states name its step."""
        by_step, run_id = files_by_step(self.checkpoints, "parameters"), self.read_id()
        for step, state in reversed(files_by_step(self.checkpoints, "state").items()):
            metadata = parameters.read_metadata(state, {"run": run_id, "step": step})
            best_step = metadata.get("best_step")
            if best_step in by_step:
                return by_step[best_step]
        if self.model.exists() and "step" in parameters.read_metadata(self.model):
            return self.model  # of a run that is not finished
        raise RegardError(
            f"{self.path} has no checkpoint of its best validation any more; without checkpoint= "
            "its final parameters are loaded"
        )

    def identify(self, file: Path, tokenizers: Tokenizers) -> dict[str, str | int]:
        """Return what a parameter file must belong to, if it is one of this run."""
        identity = parameters.identify(self.read_id(), tokenizers)
        match = re.fullmatch(r"(?:step|parameters)-(\d+)\.safetensors", file.name)
        if match and file.parent in (self._snapshots, self.checkpoints):
            identity["step"] = int(match[1])
        return identity

    @property
    def _snapshots(self) -> Path:
        return self.path / "snapshots"

    @property
    def data(self) -> Path:
        """The folder of encoded pairs."""
        return self.path / "data"

    @property
    def is_shipped(self) -> bool:
        """Whether it is part of the package, in whatever way its path is written."""
        return self.path.resolve().parent == PRETRAINED.resolve()

    @property
    def engine_cache(self) -> Path:
        """The folder of the model converted for CTranslate2."""
        return self.path / "ctranslate2"

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

    def written_by_training(self) -> Iterator[Path]:
        """Yield the files and folders of the run that training writes, and all within these."""
        yield from (self.settings, self.tokenizer, self.model, self.log, self.model_card)
        for folder in (self.data, self.checkpoints, self._snapshots):
            yield folder
            if not folder.is_symlink():
                yield from sorted(folder.rglob("*"))

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

    def write_settings(
        self, settings: RunConfig, origin: Mapping[str, Any], run_id: str | None = None
    ) -> None:
        """Write the settings with a checksum.

        Args:
            settings: all settings.
            origin: where the data comes from: `texts`, `fingerprints`, `dataset`, …
            run_id: the id of a run that exists already. A new one is a digest of settings and
                texts: the same training in another folder writes the same files.
        """
        content = {
            "format_version": FORMAT_VERSION,
            "regard": __version__,
            "run": _digest(settings, origin) if run_id is None else run_id,
            "origin": dict(origin),
            **asdict(settings),
        }
        files.write_file(self.settings, checksums.dumps(content, indent=2))

    def read_settings(self) -> tuple[RunConfig, dict[str, Any]]:
        """Return the settings and the origin of the data.

        Raises:
            RegardError: if the folder is not a run, the settings are damaged, or their format
                version is another one.
        """
        return self._read(
            lambda content: (
                RunConfig.from_dict({name: content[name] for name in SECTIONS}),
                _origin(content),
            )
        )

    def read_id(self) -> str:
        """Return the id of the run, which its other files name, too.

        Raises:
            RegardError: as `read_settings`.
        """
        return self._read(lambda content: str(content["run"]))

    def _read(self, parse: Callable[[dict[str, Any]], Parsed]) -> Parsed:
        """Read and verify settings.json, and parse what is needed of it."""
        try:
            content = _verify(self.settings, read_bounded(self.settings, MAX_SETTINGS_BYTES))
            _check_version(self.settings, content)
            return parse(content)
        except OSError as error:
            raise self._not_a_run() from error
        except RegardError:
            raise
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise RegardError(f"{self.settings} is damaged or was edited: {error}") from error

    def _not_a_run(self) -> RegardError:
        """Return the error for a path without settings, with what was probably meant."""
        if self.path.is_file():
            is_trace = self.path.name.endswith((".json", ".json.gz", ".jsonl", ".jsonl.gz"))
            hint = f"; `regard explore --trace {self.path}` opens a trace" if is_trace else ""
            return RegardError(
                f"{self.path} is not a run: a run is a folder, and it is a file{hint}"
            )
        hint = f"`regard train PAIRS --out {self.path}` creates one"
        if not self.path.exists() and get_close_matches(self.path.name, [DEMO_MODEL], cutoff=0.8):
            hint = f"did you mean {DEMO_MODEL}?"
        return RegardError(f"{self.path} is not a run: it has no settings.json; {hint}")

    def read_log(self) -> list[dict[str, Any]]:
        """Return the entries of the training log; an incomplete last line is ignored.

        Raises:
            RegardError: if the log is damaged, or the run is finished and its log is not.
        """
        content = log.read_content(self.log, self.read_id())
        if content.damaged_lines:
            raise RegardError(f"{self.log} is damaged: line {content.damaged_lines[0]} is wrong")
        if not log.is_in_order(content.entries):
            raise RegardError(f"{self.log} is damaged: its lines are not in order")
        is_complete = bool(content.entries) and log.END in content.entries[-1]
        if self.model_card.exists() and (content.has_torn_end or not is_complete):
            raise RegardError(f"{self.log} is damaged: its last line is missing")
        return content.entries


def files_by_step(folder: Path, prefix: str) -> dict[int, Path]:
    """Return the files `prefix-STEP.safetensors` of a folder, by step in rising order."""
    pattern = re.compile(rf"{prefix}-(0|[1-9][0-9]{{0,17}})\.safetensors")
    matches = ((pattern.fullmatch(path.name), path) for path in folder.glob("*"))
    return dict(sorted((int(match[1]), path) for match, path in matches if match))


def _verify(path: Path, data: bytes) -> dict[str, Any]:
    """Return the content of settings.json; another format is named before its checksum."""
    try:
        return checksums.loads(data)
    except checksums.ChecksumError as error:
        if "no checksum" in str(error):
            try:
                content = parse_object(data, "it")
            except RegardError as problem:
                raise checksums.ChecksumError(str(problem)) from error
            _check_version(path, content)
        raise


def _digest(settings: RunConfig, origin: Mapping[str, Any]) -> str:
    content = [asdict(settings), origin.get("fingerprints")]
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:RUN_ID_DIGITS]


def _check_version(path: Path, content: Mapping[str, Any]) -> None:
    """Raise RegardError for a run of an older or newer format."""
    version = content.get("format_version", 0)
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise RegardError(
            f"{path} was written by a newer version of regard "
            f"({content.get('regard', 'unknown')}, format version {version}), but this is "
            f"{__version__}, which reads format version {FORMAT_VERSION}; update regard"
        )
    if version != FORMAT_VERSION:
        raise RegardError(
            f"{path} has format version {version!r}, but this version of regard reads version "
            f"{FORMAT_VERSION}; train the run again, or use the version of regard that wrote it"
        )


def _origin(content: Mapping[str, Any]) -> dict[str, Any]:
    origin = content["origin"]
    texts = origin.get("texts") if isinstance(origin, dict) else None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"origin must have a list of texts, but it is {origin!r}")
    return dict(origin)


def find_run(path: str | PathLike[str]) -> Path:
    """Return the folder of a run: the path itself, or the shipped run that it names.

    A folder of the same name in the current directory comes first.

    Example:
        >>> find_run("runs/french").as_posix()
        'runs/french'
        >>> find_run("demo-model").name
        'demo-model'
    """
    if not isinstance(path, str | PathLike):
        raise wrong_type("path", "a run folder", path)
    path = Path(path)
    if path == Path(DEMO_MODEL) and not path.exists():
        return PRETRAINED / DEMO_MODEL
    return path
