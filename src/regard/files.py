"""Files that are whole or not there: written to a temporary name, synced, renamed."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from regard.errors import RegardError

if sys.platform != "win32":
    import fcntl


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


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold a folder, so that no other process works in it; however this one ends, it is free."""
    if folder.exists() and not folder.is_dir():
        raise RegardError(f"{folder} must be a folder, but it is a file")
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if sys.platform == "win32":  # where folders cannot be locked
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as problem:
        raise RegardError(
            f"another process is at work in {folder}; it must end before this one can begin"
        ) from problem
    finally:
        os.close(handle)


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
