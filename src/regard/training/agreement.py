"""Agreement of all processes of a run at its start: command, corpus, folder, data and step.

Each check raises the same SharedError, which names a difference, in every process. Without these
checks, processes that differ wait for each other in vain or train on different data.
"""

import secrets
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from regard._support import files
from regard._support.text import count
from regard.config import RunConfig
from regard.errors import SharedError
from regard.runs import RunFolder
from regard.training.distributed import Distributed
from regard.training.setup import CorpusSummary
from regard.training.train_state import TrainState


def check_same_command(
    group: Distributed, config: RunConfig, summaries: Sequence[CorpusSummary]
) -> None:
    """Raise SharedError unless all processes have the same settings and read the same pairs."""
    if group.world_size == 1:
        return
    starts = group.gather(
        {
            "settings": {
                f"{section}.{key}": value
                for section, settings in config.to_dict().items()
                for key, value in settings.items()
            },
            "corpora": [[summary.pairs, summary.fingerprint] for summary in summaries],
        }
    )
    for rank, start in enumerate(starts):
        _compare_settings(group, rank, starts[0]["settings"], start["settings"])
        _compare_corpora(group, rank, starts[0]["corpora"], start["corpora"])


def _compare_settings(
    group: Distributed, rank: int, first: dict[str, Any], other: dict[str, Any]
) -> None:
    for name, value in first.items():
        if other[name] != value:
            raise SharedError(
                f"{name} must be the same on all hosts, but it is {value!r} on {_name(group, 0)} "
                f"and {other[name]!r} on {_name(group, rank)}; run the same command on all hosts"
            )


def _compare_corpora(group: Distributed, rank: int, first: list[Any], other: list[Any]) -> None:
    kinds = ("training", "validation")
    if len(first) != len(other):
        raise SharedError(
            "validation pairs must be given on all hosts or on none, but "
            f"{_name(group, 0)} and {_name(group, rank)} differ"
        )
    for kind, (pairs, fingerprint), (other_pairs, other_fingerprint) in zip(
        kinds, first, other, strict=False
    ):
        if fingerprint != other_fingerprint:
            numbers = count(pairs, "pair"), count(other_pairs, "pair")
            if pairs == other_pairs:
                numbers = numbers[0], f"{numbers[1]} with other texts"
            raise SharedError(
                f"the {kind} pairs must be the same on all hosts, but there are {numbers[0]} on "
                f"{_name(group, 0)} and {numbers[1]} on {_name(group, rank)}"
            )


def check_shared_folder(group: Distributed, folder: Path) -> None:
    """Raise SharedError unless all processes see the folder that the main process writes to.

    The main process leaves a temporary file in it, which the others look for: a copy of the folder
    is not enough, because every host may become the main one after an elastic restart.
    """
    if group.world_size == 1:
        return
    name = ""
    with group.raise_together():
        if group.is_main:
            name = f".shared.{secrets.randbelow(10**9)}.tmp"
            files.write_file(folder / name, "")
    name = group.gather(name)[0]
    answers = group.gather([str(folder), _exists(folder / name), _exists(folder)])
    if group.is_main:
        (folder / name).unlink(missing_ok=True)
    for rank, (path, is_shared, is_folder) in enumerate(answers):
        if not is_shared:
            what = "is another folder" if is_folder else "does not exist"
            raise SharedError(
                f"all hosts must share the run folder {answers[0][0]} of {_name(group, 0)}, but "
                f"{path} {what} on {_name(group, rank)}; out= must be on a file system that all of "
                "them mount, such as NFS"
            )


def check_same_state(group: Distributed, folder: RunFolder, state: TrainState | None) -> None:
    """Raise SharedError unless all processes begin at the same step of the same run and data."""
    if group.world_size == 1:
        return
    step = 0 if state is None else state.step
    parts = {
        "settings": folder.settings,
        "tokenizers": folder.tokenizer,
        "training pairs": folder.data / "train" / "metadata.json",
        "validation pairs": folder.data / "valid" / "metadata.json",
    }
    digests = {name: _digest(path) for name, path in parts.items()}
    starts = group.gather([step, digests])
    first_step, first_digests = starts[0]
    for rank, (other_step, other_digests) in enumerate(starts):
        for name, digest in first_digests.items():
            if other_digests[name] != digest:
                raise SharedError(
                    f"{folder.path} must have the same {name} on all hosts, but {_name(group, 0)} "
                    f"and {_name(group, rank)} read different ones"
                )
        if other_step != first_step:
            raise SharedError(
                f"all processes must resume from the same step, but {_name(group, 0)} resumes from "
                f"{first_step} and {_name(group, rank)} from {other_step}: one of them cannot read "
                f"all of {folder.checkpoints}"
            )


def _name(group: Distributed, rank: int) -> str:
    """Return how to call a process: its host if there are several, and its rank."""
    return f"{group.hosts[rank]} (rank {rank})" if len(set(group.hosts)) > 1 else f"rank {rank}"


def _exists(path: Path) -> bool:
    with suppress(OSError):  # such as no permission
        return path.exists()
    return False


def _digest(path: Path) -> str:
    with suppress(OSError):
        return sha256(path.read_bytes()).hexdigest()
    return "unreadable"
