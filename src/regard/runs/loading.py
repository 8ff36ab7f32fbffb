"""Loading of a run, and the fingerprint of its files, by which a changed run is noticed."""

from os import PathLike
from pathlib import Path

import torch

from regard.data import Tokenizers
from regard.errors import RegardError, wrong_type
from regard.models import build, min_parameters
from regard.runs import parameters
from regard.runs.engines import choose_engine
from regard.runs.folder import RunFolder, find_run
from regard.runs.run import Run

Fingerprint = tuple[tuple[int, int, int] | None, ...]
"""Modification time, size and inode of each file; None for one that does not exist."""


def load(
    path: str | PathLike[str],
    device: str | torch.device = "cpu",
    checkpoint: int | str | Path | None = None,
    engine: str = "auto",
    quantization: str | None = None,
) -> Run:
    """Load a run.

    Args:
        path: the run folder, or "demo-model" for the run that the package ships.
        device: where the model is put, such as "cuda".
        checkpoint: parameters to load instead of the final ones: "best" for those of the best
            validation, the number of a step that has a checkpoint or a snapshot, or a parameter
            file. The final ones may be an average of checkpoints; while a run is being trained
            they are the best so far.
        engine: what translates: "torch", "ctranslate2" (the extra `fast`), or "auto", which takes
            CTranslate2 if it is installed and can represent the model, and torch otherwise. The
            converted model is kept in the run folder.
        quantization: in which CTranslate2 computes matrix products, such as "int8"; "float32" by
            default.

    Returns:
        The run, its model in evaluation mode.

    Raises:
        RegardError: if the folder is not a run, has no parameters yet, or a file is damaged; if
            there is no such checkpoint, device, engine or quantization.
        TypeError: if the path or the device is of a wrong type.
        MissingExtraError: if CTranslate2 is asked for and not installed.

    Example:
        >>> import regard
        >>> run = regard.load(run.folder.path, checkpoint="best")
        >>> run = regard.load(run.folder.path, checkpoint=25)
        >>> regard.load(run.folder.path, checkpoint=26)
        Traceback (most recent call last):
        regard.errors.RegardError: ... has no parameters of step 26; choose from 0, 25, ...
    """
    folder, device = RunFolder(find_run(path)), _check_device(device)
    settings, _ = folder.read_settings()
    tokenizers = Tokenizers.load(folder.tokenizer, folder.read_id())
    file = folder.find_parameters(checkpoint)
    num_parameters = min_parameters(settings.model, tokenizers.vocab_sizes)
    parameters.check_size(file, num_parameters, min_tensors=2 * settings.model.layers)
    # all parameters are replaced: they must not cost the caller random numbers
    with torch.random.fork_rng([]), torch.device("cpu"):
        model = build(settings.model, tokenizers.vocab_sizes)
    tensors, _ = parameters.load(file, folder.identify(file, tokenizers))
    parameters.load_into(model, tensors, file)
    model = model.to(device).eval()
    # other checkpoints, and the run that the package ships, are converted in memory
    is_cached = file == folder.model and not folder.is_shipped
    cache = folder.engine_cache if is_cached else None
    chosen = choose_engine(model, tokenizers, cache, engine, quantization)
    return Run(folder, settings, tokenizers, model, chosen)


def _check_device(device: str | torch.device) -> torch.device:
    try:
        checked = torch.device(device)
    except TypeError as error:
        raise wrong_type("device", "a name such as 'cpu' or 'cuda'", device) from error
    except RuntimeError as error:
        raise RegardError(
            f"device must be such as 'cpu' or 'cuda', but it is {device!r}"
        ) from error
    if checked.type == "cuda" and (checked.index or 0) >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        raise RegardError(
            f"device must be one of this machine, but it is '{checked}' and there "
            f"{'is 1 GPU' if count == 1 else f'are {count} GPUs'}; device='cpu' always works"
        )
    try:
        torch.empty(0, device=checked).numpy(force=True)  # the meta device has no values
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise RegardError(
            f"device must be one of this machine, but '{checked}' is not usable; device='cpu' "
            "always works"
        ) from error
    return checked


def fingerprint_run(folder: RunFolder, parameters: Path | None = None) -> Fingerprint:
    """Return modification time, size and inode of a run's files, which change with them.

    Args:
        folder: the files of the run.
        parameters: the parameter file; the final one by default.

    Returns:
        An entry for settings, tokenizers and parameters.

    Example:
        >>> fingerprint_run(run.folder) == fingerprint_run(run.folder)
        True
        >>> fingerprint_run(RunFolder(Path("missing")))
        (None, None, None)
    """
    paths = (folder.settings, folder.tokenizer, parameters or folder.model)
    return tuple(_file_stamp(path) for path in paths)


def _file_stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
