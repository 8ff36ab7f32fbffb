"""Atomic writes and file locks: a file is complete or absent, whenever the process is killed."""

import errno
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from regard.errors import RegardError

if sys.platform != "win32":
    import fcntl


def write_file(
    path: Path, content: str | bytes, *, replace_link: bool = False, make_folder: bool = True
) -> None:
    """Write a file atomically: readers see the old content or the new one, nothing in between.

    Args:
        path: the file.
        content: what to write.
        replace_link: as for `atomic_write`.
        make_folder: as for `atomic_write`.
    """
    data = content.encode() if isinstance(content, str) else content
    with atomic_write(path, replace_link=replace_link, make_folder=make_folder) as temp:
        temp.write_bytes(data)


def append_text(path: Path, text: str) -> None:
    """Append text to a file; a process that is killed may leave a part of it."""
    with wrap_os_errors(path):
        check_in_place(path)
        with path.open("ab") as file:  # as text, line feeds would become others on Windows
            file.write(text.encode())


@contextmanager
def atomic_write(
    path: Path, *, replace_link: bool = False, make_folder: bool = True
) -> Iterator[Path]:
    """Yield a temporary path to write to; on success sync it and rename it to `path`.

    The temporary file is removed on any error, and the old content of `path` is kept. A locked
    folder that was moved or deleted is not created again.

    Args:
        path: the file.
        replace_link: whether to replace whatever has this name by a file. By default a symbolic
            link stays a link, whose target is replaced, and what is not a regular file, such as
            /dev/stdout, is written to directly. That is right for a path that the user names, and
            wrong within a folder that others may have made: a link may lead to any file.
        make_folder: whether to make the folder of the path if it does not exist.
    """
    with wrap_os_errors(path):
        check_in_place(path)
        target = path if replace_link else Path(os.path.realpath(path))
        if not replace_link and target.exists() and not target.is_file():
            yield target
            return
        temp = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        if make_folder:
            _make_folder(target.parent)
        if temp.is_symlink() or not temp.is_file():  # the name can be guessed
            temp.unlink(missing_ok=True)
        try:
            yield temp
            _sync(temp)
            temp.replace(target)
            _sync_folder(target.parent)
        finally:
            temp.unlink(missing_ok=True)


def _make_folder(folder: Path) -> None:
    """Make a folder and its parents, but never a locked folder itself."""
    lock = _lock_of(folder)
    if lock is None:
        folder.mkdir(parents=True, exist_ok=True)
        return
    parts = folder.relative_to(lock.path).parts
    for depth in range(1, len(parts) + 1):
        lock.path.joinpath(*parts[:depth]).mkdir(exist_ok=True)


@contextmanager
def wrap_os_errors(path: Path) -> Iterator[None]:
    """Turn an OSError while writing `path` into a RegardError of one line."""
    try:
        yield
    except OSError as error:
        check_in_place(path)
        raise RegardError(f"cannot write {path}: {describe_os_error(error)}") from error


def is_disk_full(error: OSError) -> bool:
    """Return whether the disk is full, or the user's share of it."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def describe_os_error(error: OSError) -> str:
    """Return the reason of an error; a full disk is worded in one way everywhere."""
    return "no space left on the disk" if is_disk_full(error) else str(error.strerror or error)


@dataclass(slots=True)
class _Lock:
    """A folder that this process has locked, and how to recognize it."""

    path: Path
    identity: tuple[int, int]  # device and inode
    marker: str | None  # name of a file that a complete folder has
    has_marker: bool = False  # whether it was there

    def is_in_place(self) -> bool:
        """Return whether the path still leads to the folder, and it is not being deleted."""
        try:
            status = self.path.stat()
        except OSError:
            return False
        if (status.st_dev, status.st_ino) != self.identity:
            return False
        if self.marker is None:
            return True
        is_there = (self.path / self.marker).exists()
        self.has_marker |= is_there
        return is_there or not self.has_marker


_locks: list[_Lock] = []


def _lock_of(path: Path) -> _Lock | None:
    path = path.absolute()
    return next((lock for lock in _locks if path.is_relative_to(lock.path)), None)


def check_in_place(path: Path) -> None:
    """Raise RegardError if the locked folder of a path was moved or deleted.

    A path outside of the folders that this process has locked is not checked.
    """
    lock = _lock_of(path)
    if lock is not None and not lock.is_in_place():
        raise RegardError(
            f"{lock.path} was moved or deleted while it was in use; if it was moved, the same "
            "command with its new path resumes"
        )


@contextmanager
def lock_folder(folder: Path, marker: str | None = None) -> Iterator[None]:
    """Lock a folder for this process (a file lock on the folder); create it if it does not exist.

    The lock is `flock` on the folder itself. The kernel releases it however the process ends, and
    unlike a lock file (which the filelock library needs) it leaves nothing behind in a run folder.
    Windows cannot lock folders; there nothing is locked. Within the lock, nothing is written to the
    folder once it was moved or deleted; see `check_in_place`.

    Args:
        folder: the folder.
        marker: name of a file that the folder has, or gets, for as long as it is not deleted.

    Raises:
        RegardError: if another process holds the lock, or `folder` is a file.
    """
    with wrap_os_errors(folder):
        if folder.exists() and not folder.is_dir():
            raise RegardError(f"{folder} must be a folder, but it is a file")
        folder.mkdir(parents=True, exist_ok=True)
        status = folder.stat()
    identity = status.st_dev, status.st_ino
    paths = {folder.absolute(), folder.resolve()}
    locks = [_Lock(path, identity, marker) for path in paths]
    with _flock(folder):
        _locks.extend(locks)
        try:
            yield
        finally:
            for lock in locks:
                _locks.remove(lock)


@contextmanager
def _flock(folder: Path) -> Iterator[None]:
    if sys.platform == "win32":
        yield
        return
    with wrap_os_errors(folder):
        handle = os.open(folder, os.O_RDONLY)
    try:
        with wrap_os_errors(folder):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise RegardError(
                    f"{folder} is in use by another process; wait until it ends, or stop it"
                ) from error
        yield
    finally:
        os.close(handle)


def temp_target(path: Path) -> str | None:
    """Return the file name that a temporary file was meant for; None for any other file."""
    match = re.fullmatch(r"\.(.+)\.\d+\.tmp", path.name)
    return match and match[1]


def remove_temps(folder: Path) -> None:
    """Remove the temporary files that a killed process left behind."""
    for path in folder.glob(".*.tmp"):
        if temp_target(path):
            path.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk; Windows cannot open folders."""
    if sys.platform != "win32":
        _sync(folder, os.O_RDONLY)


def _sync(path: Path, flags: int = os.O_RDWR) -> None:
    """Wait until a file is on the disk; Windows syncs only what is open for writing."""
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
