"""Parameters in safetensors files with a checksum: a file is complete and unaltered, or refused."""

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


def save(
    path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any] | None = None
) -> None:
    """Write tensors and JSON metadata atomically, with a checksum of both.

    Equal tensors and metadata give equal bytes.

    Args:
        path: the safetensors file.
        tensors: tensors by name, on any device.
        metadata: anything that JSON can hold, such as the step.

    Raises:
        RegardError: if the file cannot be written; an old one is kept.
    """
    ready = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(metadata or {}, sort_keys=True)
    with files.atomic_write(path) as temp:
        temp.touch()
        mode = temp.stat().st_mode  # as the umask says; safetensors makes files private
        try:
            save_file(ready, temp, {"metadata": text, "checksum": _checksum(ready, text)})
            temp.chmod(mode)
        except SafetensorError as error:  # such as a full disk
            raise OSError(str(error)) from error


def load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the tensors and the metadata that `save` wrote.

    Raises:
        RegardError: if the file is missing, truncated or altered.
    """
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            header = file.metadata() or {}
    except FileNotFoundError as error:
        raise RegardError(f"there is no parameter file {path}") from error
    except (SafetensorError, OSError) as error:
        raise RegardError(f"{path} is damaged: {error}") from error
    if header.get("checksum") != _checksum(tensors, header.get("metadata", "")):
        raise RegardError(f"{path} is damaged: its checksum is wrong")
    return tensors, json.loads(header["metadata"])


def state_of(model: nn.Module) -> dict[str, Tensor]:
    """Return the parameters and persistent buffers of a model by name; shared ones once."""
    persistent = model.state_dict()
    buffers = {name: tensor for name, tensor in model.named_buffers() if name in persistent}
    return dict(model.named_parameters()) | buffers


@torch.no_grad()
def load_into(model: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Copy tensors into a model, all or none.

    Args:
        model: the model.
        tensors: its state, as `state_of` names it.
        path: where they come from, for the message.

    Raises:
        RegardError: if names or shapes differ; the model is unchanged then.
    """
    state = state_of(model)
    for name in sorted(state.keys() ^ tensors.keys()):
        lacking = "the model" if name in tensors else "the file"
        raise RegardError(f"{path} does not match the run's settings: {lacking} has no {name!r}")
    for name, tensor in state.items():
        if tensor.shape != tensors[name].shape:
            raise RegardError(
                f"{path} does not match the run's settings and vocabulary: {name!r} must have "
                f"shape {tuple(tensor.shape)}, but it has {tuple(tensors[name].shape)}"
            )
    for name, tensor in state.items():
        tensor.copy_(tensors[name])


def average(paths: Iterable[Path]) -> dict[str, Tensor]:
    """Return the mean of the parameters of several files (checkpoint averaging), in float64.

    Integer tensors, such as counters, are those of the last file.
    """
    paths = list(paths)
    total: dict[str, Tensor] = {}
    for path in paths:
        for name, tensor in load(path)[0].items():
            if tensor.is_floating_point():
                total[name] = total[name] + tensor.double() if name in total else tensor.double()
            else:
                total[name] = tensor
    return {n: (t / len(paths)).float() if t.is_floating_point() else t for n, t in total.items()}


def _checksum(tensors: Mapping[str, Tensor], metadata: str) -> str:
    digest = sha256(metadata.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
