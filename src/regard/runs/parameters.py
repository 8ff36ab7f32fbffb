"""Tensors in files that can be trusted: safetensors with a checksum, whole or refused."""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from regard._support import files
from regard.errors import RegardError


def save(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any] | None = None) -> None:
    """Write tensors, and notes about them, with a checksum of both."""
    ready = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    notes = json.dumps(about or {}, sort_keys=True)
    with files.atomic_write(path) as draft:
        draft.touch()
        readers = draft.stat().st_mode  # whom the user lets read; safetensors lets the owner alone
        try:
            save_file(ready, draft, {"about": notes, "checksum": _checksum(ready, notes)})
            draft.chmod(readers)
        except SafetensorError as problem:  # a full disk among others
            raise OSError(str(problem)) from problem


def load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save` wrote; refuse what is torn or altered."""
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            notes = file.metadata() or {}
    except FileNotFoundError as problem:
        raise RegardError(f"there are no weights at {path}") from problem
    except (SafetensorError, OSError) as problem:
        raise RegardError(f"{path} is torn: {problem}") from problem
    if notes.get("checksum") != _checksum(tensors, notes.get("about", "")):
        raise RegardError(f"{path} was altered: its checksum does not fit")
    return tensors, json.loads(notes["about"])


def state_of(model: nn.Module) -> dict[str, Tensor]:
    """Give the weights of a model by name; what is shared comes once."""
    kept = model.state_dict()
    buffers = {name: tensor for name, tensor in model.named_buffers() if name in kept}
    return dict(model.named_parameters()) | buffers


@torch.no_grad()
def load_into(model: nn.Module, tensors: Mapping[str, Tensor], where: Path) -> None:
    """Copy weights into a model that has the same ones."""
    wanted = state_of(model)
    for name in sorted(wanted.keys() ^ tensors.keys()):
        whose = "the model has not" if name in tensors else "the file has not"
        raise RegardError(f"{where} does not fit the settings beside it: {whose} {name!r}")
    for name, tensor in wanted.items():
        if tensor.shape != tensors[name].shape:
            raise RegardError(
                f"{where} does not fit the settings and vocabulary beside it: {name!r} must be "
                f"{tuple(tensor.shape)}, but it is {tuple(tensors[name].shape)}"
            )
    for name, tensor in wanted.items():  # now that all of them fit
        tensor.copy_(tensors[name])


def average(paths: Iterable[Path]) -> dict[str, Tensor]:
    """Average the weights of several files, in float64."""
    total: dict[str, Tensor] = {}
    kept = list(paths)
    for path in kept:
        for name, tensor in load(path)[0].items():
            wide = tensor.double() if tensor.is_floating_point() else tensor
            total[name] = total[name] + wide if name in total and wide.is_floating_point() else wide
    return {n: (t / len(kept)).float() if t.is_floating_point() else t for n, t in total.items()}


def _checksum(tensors: Mapping[str, Tensor], notes: str) -> str:
    digest = sha256(notes.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
