"""Fingerprint of the files of a run, by which a changed run is noticed without reading it."""

from pathlib import Path

from regard.runs.folder import RunFolder

Fingerprint = tuple[tuple[int, int, int] | None, ...]
"""Modification time, size and inode of each file; None for one that does not exist."""


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
