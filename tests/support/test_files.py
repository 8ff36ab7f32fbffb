import errno
import fcntl
import os
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from regard._support import files
from regard.errors import RegardError

# writes half of a file and kills itself, so that there is nothing to wait for
WRITE_AND_DIE = """
import os, signal, sys
from pathlib import Path
from regard._support import files
with files.atomic_write(Path(sys.argv[1])) as temp:
    with temp.open("w") as file:
        file.write("half of it")
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)
"""


LOCK_AND_DIE = """
import os, signal, sys
from pathlib import Path
from regard._support import files
with files.lock_folder(Path(sys.argv[1])):
    os.kill(os.getpid(), signal.SIGKILL)
"""


@contextmanager
def file_size_limit(size):
    """Let no file grow beyond `size` bytes, as on a full disk."""
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("content", ["", "été\r\n", b"\0\xff"])
def test_written_file_has_exactly_the_content(tmp_path, content):
    path = tmp_path / "some" / "new" / "file"
    files.write_file(path, content)
    data = content.encode() if isinstance(content, str) else content
    assert path.read_bytes() == data
    assert names(path.parent) == ["file"]


def test_new_content_replaces_all_of_the_old(tmp_path):
    path = tmp_path / "file"
    files.write_file(path, "a long text that was there before")
    files.write_file(path, "short")
    assert path.read_text() == "short"
    assert names(tmp_path) == ["file"]


def test_reader_sees_the_old_file_until_the_new_one_is_complete(tmp_path):
    path = tmp_path / "file"
    files.write_file(path, "old")
    with files.atomic_write(path) as temp:
        temp.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_open_reader_keeps_reading_the_old_file(tmp_path):
    path = tmp_path / "file"
    files.write_file(path, "old and long")
    with path.open() as reader:
        files.write_file(path, "new")
        assert reader.read() == "old and long"


def test_error_while_writing_leaves_the_old_file_and_no_temp(tmp_path):
    path = tmp_path / "file"
    files.write_file(path, "old")
    with pytest.raises(ZeroDivisionError, match="zero"), files.atomic_write(path) as temp:
        temp.write_text("half")
        1 / 0  # noqa: B018
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file"]


def test_kill_while_writing_leaves_the_old_file_and_a_removable_temp(tmp_path):
    path = tmp_path / "file"
    files.write_file(path, "old")
    ended = subprocess.run([sys.executable, "-c", WRITE_AND_DIE, path], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert path.read_text() == "old"
    assert len(names(tmp_path)) == 2
    files.remove_temps(tmp_path)
    assert names(tmp_path) == ["file"]


def test_remove_temps_removes_nothing_else(tmp_path):
    for name in (".hidden", "a.tmp", ".a.1.tmp", "b"):
        (tmp_path / name).write_text("x")
    files.remove_temps(tmp_path)
    assert names(tmp_path) == [".hidden", "a.tmp", "b"]
    files.remove_temps(tmp_path / "missing")


def test_file_is_synced_before_and_folder_after_the_rename(tmp_path, monkeypatch):
    path = tmp_path / "file"
    synced = []
    monkeypatch.setattr(files.os, "fsync", lambda handle: synced.append(path.exists()))
    files.write_file(path, "text")
    assert synced == [False, True], "the file before, its folder after"


@pytest.fixture
def on_windows(monkeypatch):
    """Folders cannot be opened, and only what is open for writing can be synced."""
    open_, fsync = os.open, os.fsync

    def open_file(path, flags, *mode):
        if Path(path).is_dir():
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return open_(path, flags, *mode)

    def sync_writable(handle):
        if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        fsync(handle)

    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(os, "open", open_file)
    monkeypatch.setattr(os, "fsync", sync_writable)


def test_file_is_written_where_folders_cannot_be_opened(tmp_path, on_windows):
    with files.lock_folder(tmp_path):
        files.write_file(tmp_path / "file", "old")
        files.write_file(tmp_path / "file", "new")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"file": "new"}


def test_two_processes_write_to_different_temps(tmp_path, monkeypatch):
    with files.atomic_write(tmp_path / "file") as one:
        one.write_text("one")
        monkeypatch.setattr(files.os, "getpid", lambda: os.getppid())
        with files.atomic_write(tmp_path / "file") as other:
            other.write_text("other")
            assert one != other


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_full_disk_is_reported_in_one_line_and_keeps_the_old_content(tmp_path, monkeypatch, number):
    path = tmp_path / "file"
    files.write_file(path, "old")

    def full(handle):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(RegardError, match=r"^cannot write .*file: no space left on the disk$"):
        files.write_file(path, "new")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file"]


def test_file_size_limit_is_reported_in_one_line(tmp_path):
    path = tmp_path / "file"
    files.write_file(path, "old")
    with (
        file_size_limit(100),
        pytest.raises(RegardError, match=r"^cannot write .*file: File too large$"),
    ):
        files.write_file(path, b"x" * 1000)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("below", ["file/new", "file/new/newer"])
def test_impossible_parent_folder_is_reported_in_one_line(tmp_path, below):
    (tmp_path / "file").write_text("old")
    with pytest.raises(RegardError, match=rf"^cannot write .*{below}: (File exists|Not a dir)"):
        files.write_file(tmp_path / below, "new")
    assert (tmp_path / "file").read_text() == "old"


def test_folder_is_not_replaced_by_a_file(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(RegardError, match=r"^cannot write .*folder: Is a directory"):
        files.write_file(tmp_path / "folder", "new")
    assert names(tmp_path) == ["folder"]


def test_second_lock_is_refused_until_the_first_is_released(tmp_path):
    folder = tmp_path / "new"
    with files.lock_folder(folder):
        assert folder.is_dir()
        refused = pytest.raises(RegardError, match=r"new is in use by another process")
        with refused, files.lock_folder(folder):
            raise AssertionError
    with files.lock_folder(folder):
        assert not list(folder.iterdir())


def test_lock_of_a_killed_process_is_free(tmp_path):
    killed = subprocess.run([sys.executable, "-c", LOCK_AND_DIE, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    with files.lock_folder(tmp_path):
        pass


def test_error_under_the_lock_is_not_wrapped(tmp_path):
    with pytest.raises(BlockingIOError, match="the pipe is full"), files.lock_folder(tmp_path):
        raise BlockingIOError("the pipe is full")


def test_unreadable_folder_cannot_be_locked(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    refused = pytest.raises(RegardError, match=r"cannot write .*: Permission denied")
    with refused, files.lock_folder(tmp_path):
        raise AssertionError


def test_symbolic_link_stays_and_its_target_is_replaced(tmp_path):
    target, link = tmp_path / "target", tmp_path / "folder" / "link"
    target.write_text("old")
    link.parent.mkdir()
    link.symlink_to(target)
    files.write_file(link, "new")
    assert link.is_symlink() and target.read_text() == "new"


def test_fifo_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    files.write_file(pipe, "text")
    assert os.read(reader, 10) == b"text"
    assert pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]


def test_file_cannot_be_locked_as_a_folder(tmp_path):
    path = tmp_path / "file"
    path.write_text("text")
    refused = pytest.raises(RegardError, match="file must be a folder, but it is a file")
    with refused, files.lock_folder(path):
        raise AssertionError


@pytest.mark.parametrize("change", ["moved", "deleted", "replaced", "marker deleted"])
def test_locked_folder_that_was_deleted_is_not_written_to(tmp_path, change):
    """Neither the folder nor a part of it is created again, also within a write."""
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    message = r"run was moved or deleted while it was in use; if it was moved, the same command"
    with files.lock_folder(run, "settings.json"):
        files.write_file(run / "settings.json", "{}")
        files.write_file(run / "checkpoints" / "one", "1")
        files.append_text(run / "log", "1")
        if change == "marker deleted":
            (run / "settings.json").unlink()
        else:
            run.rename(elsewhere)
        if change == "replaced":
            run.mkdir()
        before = sorted(run.rglob("*"))
        for path in (run / "log", run / "new", run / "checkpoints" / "two", run / "data" / "x"):
            for write in (files.write_file, files.append_text):
                with pytest.raises(RegardError, match=message):
                    write(path, "2")
        assert run.exists() == (change in ("replaced", "marker deleted"))
        assert sorted(run.rglob("*")) == before
    files.write_file(run / "new" / "file", "2")  # the lock is released


def test_folder_that_is_moved_during_a_write_is_not_created_again(tmp_path):
    run = tmp_path / "run"
    with files.lock_folder(run):
        moved = pytest.raises(RegardError, match="run was moved or deleted")
        with moved, files.atomic_write(run / "file") as temp:
            temp.write_text("new")
            run.rename(tmp_path / "elsewhere")
    assert not run.exists()


def test_linked_folder_whose_link_is_deleted_is_not_created_again(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "run").symlink_to("disk")
    with files.lock_folder(tmp_path / "run"):
        files.write_file(tmp_path / "run" / "file", "1")
        (tmp_path / "run").unlink()
        with pytest.raises(RegardError, match="run was moved or deleted"):
            files.write_file(tmp_path / "run" / "file", "2")
    assert not (tmp_path / "run").exists()
