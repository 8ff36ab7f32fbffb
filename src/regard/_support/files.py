"""Files that are whole or not there: written to a temporary name, synced, renamed."""

import errno
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from regard.errors import RegardError

if sys.platform != "win32":
    import fcntl


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file that a reader finds either as it was or as it is now, never in between."""
    data = content.encode() if isinstance(content, str) else content
    with atomic_write(path) as draft:
        draft.write_bytes(data)


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Give a temporary path to write to; when it is written, it takes the name of `path`."""
    with wrap_os_errors(path):
        path = Path(os.path.realpath(path))  # what a link names is replaced, not the link
        if path.exists() and not path.is_file():  # such as /dev/stdout
            yield path
            return
        draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield draft
            _sync(draft)
            draft.replace(path)
            _sync(path.parent)
        finally:
            draft.unlink(missing_ok=True)


@contextmanager
def wrap_os_errors(path: Path) -> Iterator[None]:
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
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold a folder, so that no other process works in it; however this one ends, it is free."""
    with wrap_os_errors(folder):
        if folder.exists() and not folder.is_dir():
            raise RegardError(f"{folder} must be a folder, but it is a file")
        folder.mkdir(parents=True, exist_ok=True)
        handle = None if sys.platform == "win32" else os.open(folder, os.O_RDONLY)
    if handle is None:  # folders cannot be locked there
        yield
        return
    try:
        _lock(handle, folder)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, folder: Path) -> None:
    with wrap_os_errors(folder):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as problem:
            raise RegardError(
                f"another process is at work in {folder}; it must end before this one can begin"
            ) from problem


def temp_target(path: Path) -> str | None:
    """Give the name that a draft would have taken; None if it is no draft."""
    match = re.fullmatch(r"\.(.+)\.\d+\.draft", path.name)
    return match and match[1]


def remove_temps(folder: Path) -> None:
    """Remove the drafts that a killed process left behind."""
    for path in folder.glob(".*.draft"):
        if temp_target(path):
            path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Make sure that it is on the disk, and not only on its way there."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
