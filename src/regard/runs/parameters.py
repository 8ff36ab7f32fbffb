"""Parameters in safetensors files with a checksum: a file is complete and unaltered, or refused."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from regard._support import checksums, files
from regard._support.checksums import Identity
from regard._support.reading import open_regular
from regard.data import Tokenizers
from regard.errors import RegardError

HEADER = "regard"  # entry of the metadata of safetensors
TOKENIZER_DIGITS = 32


def save(
    path: Path,
    tensors: Mapping[str, Tensor],
    metadata: Mapping[str, Any] | None = None,
    identity: Identity | None = None,
) -> None:
    """Write tensors and JSON metadata atomically, with a checksum of all of it.

    Equal arguments give equal bytes.

    Args:
        path: the safetensors file.
        tensors: tensors by name, on any device.
        metadata: anything that JSON can hold, such as the step.
        identity: what the file belongs to; `load` refuses a file that belongs to something else.

    Raises:
        RegardError: if the file cannot be written; an old one is kept.
    """
    ready = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    header = {
        "metadata": dict(metadata or {}),
        "identity": dict(identity or {}),
        "tensors": digest(ready),
    }
    # one entry only: safetensors writes several in random order
    entries = {HEADER: checksums.dumps(header)}
    with files.atomic_write(path) as temp:
        temp.touch()
        mode = temp.stat().st_mode  # as the umask says; safetensors makes files private
        try:
            save_file(ready, temp, entries)
            temp.chmod(mode)
        except SafetensorError as error:  # such as a full disk
            raise _os_error(error) from error


def load(path: Path, identity: Identity | None = None) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the tensors and the metadata that `save` wrote.

    Args:
        path: the safetensors file.
        identity: what the file must belong to, as far as it names it.

    Raises:
        RegardError: if the file is missing, truncated, altered, or belongs to something else.
    """
    with _wrap_errors(path), safe_open(path, framework="pt") as file:
        header = _parse_header(path, file.metadata())
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if header["tensors"] != digest(tensors):
        raise RegardError(f"{path} is damaged: its checksum is wrong")
    checksums.check_identity(path, header["identity"], identity or {})
    return tensors, header["metadata"]


def read_metadata(path: Path, identity: Identity | None = None) -> dict[str, Any]:
    """Read the metadata that `save` wrote and verify it, without the tensors.

    Raises:
        RegardError: if the file is missing, truncated, not written by `save`, or belongs to
            something else.
    """
    with _wrap_errors(path), safe_open(path, framework="pt") as file:
        header = _parse_header(path, file.metadata())
    checksums.check_identity(path, header["identity"], identity or {})
    return dict(header["metadata"])


def _parse_header(path: Path, entries: Mapping[str, str] | None) -> dict[str, Any]:
    try:
        return checksums.loads((entries or {})[HEADER].encode())
    except KeyError as error:
        raise RegardError(f"{path} is damaged: it has no checksum") from error
    except ValueError as error:
        raise RegardError(f"{path} is damaged: {error}") from error


def _os_error(error: SafetensorError) -> OSError:
    """Return the error of the operating system that safetensors reports as text."""
    match = re.search(r"\(os error (\d+)\)", str(error))
    return OSError(int(match[1]), os.strerror(int(match[1]))) if match else OSError(str(error))


def check_size(path: Path, min_values: int, min_tensors: int) -> None:
    """Raise unless a file can hold the parameters of a model, before the model takes memory.

    Args:
        path: the safetensors file, of which only the header is read.
        min_values: how many parameters the model has at least.
        min_tensors: how many tensors these are at least.

    Raises:
        RegardError: if the file has fewer, or cannot be read.
    """
    with _wrap_errors(path), safe_open(path, framework="pt") as file:
        sizes = [prod(file.get_slice(name).get_shape()) for name in file.keys()]  # noqa: SIM118
    if sum(sizes) < min_values or len(sizes) < min_tensors:
        raise RegardError(
            f"{path} does not match the run's settings and vocabulary: they describe a model of "
            f"{min_values:,} parameters or more in {min_tensors:,} tensors or more, but the file "
            f"has {sum(sizes):,} in {len(sizes):,}"
        )


@contextmanager
def _wrap_errors(path: Path) -> Iterator[None]:
    """Turn an error while reading into a RegardError of one line."""
    try:
        _check_header_length(path)
        yield
    except FileNotFoundError as error:
        raise RegardError(f"there is no parameter file {path}") from error
    except (SafetensorError, OSError) as error:
        raise RegardError(f"{path} is damaged: {error}") from error


def _check_header_length(path: Path) -> None:
    """Raise unless the header fits into the file: safetensors maps all of it, or waits for a pipe.

    The file begins with the length of its header, in 64 bits.
    """
    with open_regular(path) as file:
        length = int.from_bytes(file.read(8), "little")
        available = path.stat().st_size - 8
    if not 0 < length <= available:
        raise RegardError(
            f"{path} is damaged: its header has {length:,} bytes, but the file {available:,} more"
        )


def identify(run_id: str, tokenizers: Tokenizers) -> dict[str, str | int]:
    """Return what the parameters of a run belong to: the run, if it is known, and its tokenizers.

    Example:
        >>> from regard.data import Tokenizer
        >>> tokenizer = Tokenizer("words", [" the", " cat"])
        >>> identify("7f", Tokenizers(tokenizer, tokenizer))
        {'run': '7f', 'tokenizer': '...'}
    """
    tokenizer = tokenizers.digest[:TOKENIZER_DIGITS]
    return {"run": run_id, "tokenizer": tokenizer} if run_id else {"tokenizer": tokenizer}


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
        RegardError: if names, types or shapes differ, or a value is not finite; the model is
            unchanged then.
    """
    state = state_of(model)
    for name in sorted(state.keys() ^ tensors.keys()):
        lacking = "the model" if name in tensors else "the file"
        raise RegardError(f"{path} does not match the run's settings: {lacking} has no {name!r}")
    for name, tensor in state.items():
        if tensor.is_floating_point() != tensors[name].is_floating_point():
            raise RegardError(
                f"{path} does not match the run: {name!r} must be {tensor.dtype}, but it is "
                f"{tensors[name].dtype}"
            )
        if tensor.shape != tensors[name].shape:
            raise RegardError(
                f"{path} does not match the run's settings and vocabulary: {name!r} must have "
                f"shape {tuple(tensor.shape)}, but it has {tuple(tensors[name].shape)}"
            )
    for name, tensor in state.items():
        if not tensors[name].to(tensor.dtype).isfinite().all():
            raise RegardError(
                f"{path} must have finite parameters, but {name!r} has NaN or infinite ones; "
                "load another checkpoint, or train again with a lower learning rate"
            )
    for name, tensor in state.items():
        tensor.copy_(tensors[name])


def average(paths: Iterable[Path], identity: Identity | None = None) -> dict[str, Tensor]:
    """Return the mean of the parameters of several files (checkpoint averaging), in float64.

    Integer tensors, such as counters, are those of the last file.
    """
    paths = list(paths)
    total: dict[str, Tensor] = {}
    for path in paths:
        for name, tensor in load(path, identity)[0].items():
            if tensor.is_floating_point():
                total[name] = total[name] + tensor.double() if name in total else tensor.double()
            else:
                total[name] = tensor
    return {n: (t / len(paths)).float() if t.is_floating_point() else t for n, t in total.items()}


def digest(tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of names, types, shapes and values of tensors on any device.

    Example:
        >>> digest({"a": torch.zeros(2)}) == digest({"a": torch.zeros(2, 1)})
        False
    """
    result = sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu()
        result.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        result.update(tensor.contiguous().flatten().view(torch.uint8).numpy().data)
    return result.hexdigest()
