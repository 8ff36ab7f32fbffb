"""Files that are whole or not there: written to a temporary name, synced, renamed."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from regard.errors import RegardError


def write(path: Path, content: str | bytes) -> None:
    """Write a file that a reader finds either as it was or as it is now, never in between."""
    data = content.encode() if isinstance(content, str) else content
    with replacing(path) as draft:
        draft.write_bytes(data)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path to write to; when it is written, it takes the name of `path`."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield draft
            _sync(draft)
            draft.replace(path)
            _sync(path.parent)
        finally:
            draft.unlink(missing_ok=True)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Say in one sentence why something could not be written."""
    try:
        yield
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            raise RegardError(
                f"no space is left to write {path}; what was there is kept"
            ) from problem
        raise RegardError(f"cannot write {path}: {problem.strerror or problem}") from problem


def sweep(folder: Path) -> None:
    """Remove the drafts that a killed process left behind."""
    for draft in folder.glob(".*.draft"):
        draft.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Make sure that it is on the disk, and not only on its way there."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
