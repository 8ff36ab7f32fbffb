"""Setup of a run: its corpus is scanned, its settings are resolved, its folder is claimed."""

import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import torch

from regard._support.progress import track
from regard._support.resources import format_gigabytes, total_memory
from regard.config import RunConfig
from regard.data import UNK, Corpus
from regard.errors import RegardError
from regard.models import count_parameters
from regard.runs import RunFolder
from regard.training.defaults import defaults_for_size, defaults_for_time_limit
from regard.training.launcher import choose_processes

CHANGEABLE = {("train", "processes"), ("train", "shard")}  # when a run is resumed
FLOAT_BYTES = 4  # parameters are trained in float32

Updates = Sequence[Mapping[str, Any]]
"""Settings `{section: {key: value}}`; later ones override earlier ones."""


class CorpusSummary(NamedTuple):
    """What one pass over a corpus finds out."""

    pairs: int
    has_links: bool  # whether some pair has word alignments
    fingerprint: str  # digest of all pairs, whatever files they are in


def scan_corpus(corpus: Corpus) -> CorpusSummary:
    """Read a corpus once: count its pairs, look for links, and compute its fingerprint."""
    count, has_links, digest = 0, False, sha256()
    for pair in track(corpus.read(), "pairs read"):
        count, has_links = count + 1, has_links or bool(pair.links)
        digest.update(repr(pair).encode())
    if count == 0:
        raise RegardError(f"{' and '.join(corpus.names)} must not be empty: there is no pair")
    return CorpusSummary(count, has_links, digest.hexdigest())


def resolve_config(summary: CorpusSummary, updates: Updates) -> RunConfig:
    """Return the defaults for the size of a corpus with all updates, checked."""
    config = _apply(RunConfig.from_dict(defaults_for_size(summary.pairs)), updates)
    minutes, pairs = config.train.minutes, summary.pairs
    if minutes is not None:
        defaults = [defaults_for_size(pairs), *defaults_for_time_limit(pairs, minutes)]
        config = _apply(RunConfig(), [*defaults, *updates])
    if not config.data.joint:  # the same id is one word in the source and another in the target
        config = config.update({"model": {"share_embeddings": False}})
    check_config(config)
    if config.train.alignment_loss_weight and not summary.has_links:
        raise RegardError(
            "train.alignment_loss_weight needs pairs with alignments, but there are none; "
            "alignments= names a file of them"
        )
    return config


def _apply(config: RunConfig, updates: Updates) -> RunConfig:
    for update in updates:
        config = config.update(update)
    return config


def resolve_processes(config: RunConfig, launched: int | None, recorded: int) -> RunConfig:
    """Return the settings with the number of processes that this start of a run has.

    Args:
        config: the settings, with a number of processes of 0 unless one was asked for.
        launched: number of processes that torchrun started, if it did; it cannot be changed.
        recorded: number of processes that the run had before, or 0.
    """
    if launched:
        return config.update({"train": {"processes": launched}})
    processes = config.train.processes or recorded or choose_processes(config)
    if torch.cuda.is_available():  # no two processes can share one
        processes = min(processes, torch.cuda.device_count())
    return config.update({"train": {"processes": processes}})


def recorded_processes(folder: RunFolder) -> int:
    """Return the number of processes that trained the run in a folder; 0 for a new run."""
    if not (folder.settings.exists() and folder.has_parameters):
        return 0
    return folder.read_settings()[0].train.processes


def check_config(config: RunConfig) -> None:
    """Raise an error for settings that cannot be trained, before any time is spent on them."""
    model, train = config.model, config.train
    check_memory(config, (UNK + 1, UNK + 1))
    layers = model.layers if model.kind == "transformer" else 1
    if train.alignment_loss_weight and train.alignment_layer >= layers:
        raise RegardError(
            f"train.alignment_layer must be below {layers}, but it is {train.alignment_layer}"
        )
    if train.precision == "bfloat16" and not torch.cuda.is_available():
        raise RegardError("train.precision must be 'float32' without a GPU, but it is 'bfloat16'")
    for name in ("compile", "snapshots"):
        if train.shard and getattr(train, name):
            raise RegardError(
                f"train.shard must be false with train.{name}, but both are true; leave one out"
            )
    needed = config.data.max_length + 1
    has_table = model.kind == "transformer" and model.positions == "learned"
    if has_table and model.max_positions < needed:
        raise RegardError(
            f"model.max_positions must be {needed} or more, for data.max_length tokens and BOS, "
            f"but it is {model.max_positions}; data.max_length={model.max_positions - 1} would "
            "also work"
        )


def check_memory(config: RunConfig, vocab_sizes: tuple[int, int]) -> None:
    """Raise an error for a model that cannot be trained in the memory of this machine.

    What it needs besides parameters, gradients and the optimizer's state depends on the batch; a
    model that fits barely may still run out of memory.
    """
    num_parameters = count_parameters(config.model, vocab_sizes)
    available = total_memory()
    if torch.cuda.is_available():
        available = torch.cuda.get_device_properties(0).total_memory
    values = {"adam": 4, "muon": 3}[config.train.optimizer]  # parameter, gradient and moments
    needed = FLOAT_BYTES * values * num_parameters
    if config.train.shard:  # each process holds its share
        needed //= max(config.train.processes, 1)
    if available is not None and needed > available:
        raise RegardError(
            f"the settings under [model] and data.vocab_size describe a model of "
            f"{num_parameters:,} parameters, which needs {format_gigabytes(needed)} to train, but "
            f"this machine has {format_gigabytes(available)}; fewer layers or a smaller width "
            "would fit"
        )


def claim_folder(folder: RunFolder, config: RunConfig, origin: Mapping[str, Any]) -> bool:
    """Write the settings into the folder of a new run; return whether the run existed already.

    A folder that belongs to another run or to something else raises an error. But a run without
    any parameters, such as one that failed at once, has nothing to lose and is replaced.

    A run may be resumed with another number of processes, sharded or not, which is then recorded.
    """
    _check_links(folder)
    if folder.settings.exists():
        known_config, known_origin = folder.read_settings()
        try:
            _check_same_config(folder.path, known_config, config)
            _check_same_corpus(folder.path, known_origin, origin)
        except RegardError:
            if folder.has_parameters:
                raise
            folder.clear()
        else:
            if known_config != config:
                folder.write_settings(config, known_origin, folder.read_id())
            return True
    elif not folder.is_empty:
        raise RegardError(f"{folder.path} exists and is not a run; out= must be a new folder")
    folder.write_settings(config, origin)
    return False


def _check_links(folder: RunFolder) -> None:
    """Raise for links out of the folder, pipes and devices: training would write through them."""
    inside = Path(os.path.realpath(folder.path))
    for path in folder.written_by_training():
        target = Path(os.path.realpath(path))
        if path.is_symlink() and not target.is_relative_to(inside):
            raise RegardError(
                f"{path} must be a file of the run, but it is a link to {target}, which training "
                "would overwrite; replace it with a copy"
            )
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise RegardError(
                f"{path} must be a file of the run, but it is a pipe or a device; remove it"
            )


def _check_same_corpus(path: Path, known: Mapping[str, Any], requested: Mapping[str, Any]) -> None:
    if known["fingerprints"] != requested["fingerprints"]:
        raise RegardError(
            f"{path} is a run with another corpus ({', '.join(known['texts'])}, or these files "
            "have changed); out= with another folder would start a new run"
        )


def _check_same_config(path: Path, known: RunConfig, requested: RunConfig) -> None:
    before, after = known.to_dict(), requested.to_dict()
    for section, settings in before.items():
        for key, value in settings.items():
            if value != after[section][key] and (section, key) not in CHANGEABLE:
                raise RegardError(
                    f"{path} is a run with {section}.{key} = {value!r}, not "
                    f"{after[section][key]!r}; out= with another folder would start a new run"
                )
