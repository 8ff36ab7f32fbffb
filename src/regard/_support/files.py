"""Atomic writes and folder locks: a file is complete or absent, whenever the process is killed."""

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
    """Write a file atomically: readers see the old content or the new one, nothing in between."""
    data = content.encode() if isinstance(content, str) else content
    with atomic_write(path) as temp:
        temp.write_bytes(data)


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to; on success sync it and rename it to `path`.

    The temporary file is removed on any error, and the old content of `path` is kept. A symbolic
    link stays a link: its target is replaced. What is not a regular file, such as /dev/stdout, is
    written to directly.
    """
    with wrap_os_errors(path):
        path = Path(os.path.realpath(path))
        if path.exists() and not path.is_file():
            yield path
            return
        temp = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield temp
            _sync(temp)
            temp.replace(path)
            _sync(path.parent)
        finally:
            temp.unlink(missing_ok=True)


@contextmanager
def wrap_os_errors(path: Path) -> Iterator[None]:
    """Turn an OSError while writing `path` into a RegardError of one line."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise RegardError(
                f"cannot write {path}: no space left on the disk; the old content is kept"
            ) from error
        raise RegardError(f"cannot write {path}: {error.strerror or error}") from error


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder for this process; create it if it does not exist.

    The lock is `flock` on the folder itself. The kernel releases it however the process ends, and
    unlike a lock file (which the filelock library needs) it leaves nothing behind in a run folder.
    Windows cannot lock folders; there this does nothing.

    Raises:
        RegardError: if another process holds the lock, or `folder` is a file.
    """
    with wrap_os_errors(folder):
        if folder.exists() and not folder.is_dir():
            raise RegardError(f"{folder} must be a folder, but it is a file")
        folder.mkdir(parents=True, exist_ok=True)
    if sys.platform == "win32":
        yield
        return
    with wrap_os_errors(folder):
        handle = os.open(folder, os.O_RDONLY)
    try:
        _flock(handle, folder)
        yield
    finally:
        os.close(handle)


def _flock(handle: int, folder: Path) -> None:
    with wrap_os_errors(folder):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RegardError(
                f"{folder} is in use by another process; wait until it ends, or stop it"
            ) from error


def temp_target(path: Path) -> str | None:
    """Return the file name that a temporary file was meant for; None for any other file."""
    match = re.fullmatch(r"\.(.+)\.\d+\.tmp", path.name)
    return match and match[1]


def remove_temps(folder: Path) -> None:
    """Remove the temporary files that a killed process left behind."""
    for path in folder.glob(".*.tmp"):
        if temp_target(path):
            path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Wait until a file or folder is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
