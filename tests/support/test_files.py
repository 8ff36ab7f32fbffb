import errno
import os
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from regard._support import files
from regard.errors import RegardError

# writes half of a file, and is killed: by itself, so that there is nothing to wait for
KILLED = """
import os, signal, sys
from pathlib import Path
from regard._support import files
with files.atomic_write(Path(sys.argv[1])) as draft:
    with draft.open("w") as file:
        file.write("half of it")
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)
"""


HOLDING = """
import os, signal, sys
from pathlib import Path
from regard._support import files
with files.lock_folder(Path(sys.argv[1])):
    os.kill(os.getpid(), signal.SIGKILL)
"""


@contextmanager
def room_for(size):
    """Let no file grow beyond so many bytes, as on a disk that is full."""
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("content", ["", "été\r\n", b"\0\xff"])
def test_what_is_written_is_there_to_the_byte(tmp_path, content):
    path = tmp_path / "some" / "new" / "file"
    files.write_file(path, content)
    data = content.encode() if isinstance(content, str) else content
    assert path.read_bytes() == data
    assert names(path.parent) == ["file"]


def test_a_file_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "file"
    files.write_file(path, "a long text that was there before")
    files.write_file(path, "short")
    assert path.read_text() == "short"
    assert names(tmp_path) == ["file"]


def test_a_reader_sees_the_old_file_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "file"
    files.write_file(path, "old")
    with files.atomic_write(path) as draft:
        draft.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_a_reader_that_has_begun_reads_the_old_file_to_its_end(tmp_path):
    path = tmp_path / "file"
    files.write_file(path, "old and long")
    with path.open() as reader:
        files.write_file(path, "new")
        assert reader.read() == "old and long"


def test_an_error_while_writing_leaves_the_old_file_and_no_draft(tmp_path):
    path = tmp_path / "file"
    files.write_file(path, "old")
    with pytest.raises(ZeroDivisionError, match="zero"), files.atomic_write(path) as draft:
        draft.write_text("half")
        1 / 0  # noqa: B018
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file"]


def test_a_kill_while_writing_leaves_the_old_file_and_a_draft_to_sweep(tmp_path):
    path = tmp_path / "file"
    files.write_file(path, "old")
    ended = subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert path.read_text() == "old"
    assert len(names(tmp_path)) == 2
    files.remove_temps(tmp_path)
    assert names(tmp_path) == ["file"]


def test_a_sweep_takes_drafts_alone(tmp_path):
    for name in (".hidden", "a.draft", ".a.1.draft", "b"):
        (tmp_path / name).write_text("x")
    files.remove_temps(tmp_path)
    assert names(tmp_path) == [".hidden", "a.draft", "b"]
    files.remove_temps(tmp_path / "missing")


def test_what_is_written_is_synced_before_it_gets_its_name(tmp_path, monkeypatch):
    path = tmp_path / "file"
    synced = []
    monkeypatch.setattr(files.os, "fsync", lambda handle: synced.append(path.exists()))
    files.write_file(path, "text")
    assert synced == [False, True], "the file before, its folder after"


def test_two_processes_do_not_write_to_one_draft(tmp_path, monkeypatch):
    with files.atomic_write(tmp_path / "file") as one:
        one.write_text("one")
        monkeypatch.setattr(files.os, "getpid", lambda: os.getppid())
        with files.atomic_write(tmp_path / "file") as other:
            other.write_text("other")
            assert one != other


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_one_sentence_and_what_was_there_is_kept(tmp_path, monkeypatch, number):
    path = tmp_path / "file"
    files.write_file(path, "old")

    def full(handle):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(RegardError, match=r"^no space is left to write .*file; what was there is"):
        files.write_file(path, "new")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file"]


def test_a_file_that_cannot_grow_is_one_sentence(tmp_path):
    path = tmp_path / "file"
    files.write_file(path, "old")
    with room_for(100), pytest.raises(RegardError, match=r"^cannot write .*file: File too large$"):
        files.write_file(path, b"x" * 1000)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("below", ["file/new", "file/new/newer"])
def test_a_folder_that_cannot_be_is_one_sentence(tmp_path, below):
    (tmp_path / "file").write_text("old")
    with pytest.raises(RegardError, match=rf"^cannot write .*{below}: (File exists|Not a dir)"):
        files.write_file(tmp_path / below, "new")
    assert (tmp_path / "file").read_text() == "old"


def test_a_folder_is_not_replaced_by_a_file(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(RegardError, match=r"^cannot write .*folder: Is a directory"):
        files.write_file(tmp_path / "folder", "new")
    assert names(tmp_path) == ["folder"]


def test_a_folder_is_held_by_one_at_a_time_and_free_afterwards(tmp_path):
    folder = tmp_path / "new"
    with files.lock_folder(folder):
        assert folder.is_dir()
        refused = pytest.raises(RegardError, match=r"another process is at work in .*new")
        with refused, files.lock_folder(folder):
            raise AssertionError
    with files.lock_folder(folder):
        assert not list(folder.iterdir())


def test_a_folder_that_a_killed_process_held_is_free(tmp_path):
    killed = subprocess.run([sys.executable, "-c", HOLDING, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    with files.lock_folder(tmp_path):
        pass


def test_an_error_of_who_holds_a_folder_is_their_own(tmp_path):
    with pytest.raises(BlockingIOError, match="the pipe is full"), files.lock_folder(tmp_path):
        raise BlockingIOError("the pipe is full")


def test_a_folder_that_cannot_be_opened_is_one_sentence(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    refused = pytest.raises(RegardError, match=r"cannot write .*: Permission denied")
    with refused, files.lock_folder(tmp_path):
        raise AssertionError


def test_a_link_stays_a_link_and_what_it_names_is_replaced(tmp_path):
    target, link = tmp_path / "target", tmp_path / "folder" / "link"
    target.write_text("old")
    link.parent.mkdir()
    link.symlink_to(target)
    files.write_file(link, "new")
    assert link.is_symlink() and target.read_text() == "new"


def test_what_is_no_file_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    files.write_file(pipe, "text")
    assert os.read(reader, 10) == b"text"
    assert pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]


def test_a_file_is_no_folder_to_hold(tmp_path):
    path = tmp_path / "file"
    path.write_text("text")
    refused = pytest.raises(RegardError, match="file must be a folder, but it is a file")
    with refused, files.lock_folder(path):
        raise AssertionError
