"""Traces, pages and figures are written atomically."""

import errno
import os

import pytest

from regard.errors import RegardError
from regard.trace import build_translation_trace
from regard.viz import plot_head, save_figure, save_page


def save_head(trace, path):
    save_figure(plot_head(trace), path)


SAVE = {
    "trace.json": lambda trace, path: trace.save(path),
    "page.html": save_page,
    "head.png": save_head,
    "head.svg": save_head,
}


@pytest.mark.parametrize("name", SAVE)
def test_full_disk_keeps_the_old_file_and_leaves_no_other(tmp_path, monkeypatch, name):
    old, new = (
        build_translation_trace(["the", "cat"], [word], cross=[[[[0.25, 0.75]]]])
        for word in ("chat", "chien")
    )
    SAVE[name](old, tmp_path / name)
    before = (tmp_path / name).read_bytes()

    def fsync(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(RegardError, match=f"cannot write .*{name}: no space left on the disk"):
        SAVE[name](new, tmp_path / name)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {name: before}


def test_paths_may_be_strings(tmp_path):
    trace = build_translation_trace(["the", "cat"], ["chat"], cross=[[[[0.25, 0.75]]]])
    for name, save in SAVE.items():
        save(trace, str(tmp_path / name))
        assert (tmp_path / name).stat().st_size > 0
