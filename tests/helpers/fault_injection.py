"""Trainings in processes of their own that are killed (SIGKILL) at a chosen point.

The processes are forked from a server that has imported torch: each starts in milliseconds.
"""

import json
import os
import signal
import time
from itertools import count
from multiprocessing import get_context
from pathlib import Path

import torch

from helpers.tiny_corpus import TINY
from regard._support import files
from regard.training import train

POINTS = ("fsync", "rename", "half-written file", "unlink")
SETTINGS = [TINY, {"train": {"snapshots": True, "steps": 30, "processes": 1}}]
START_TIMEOUT_SECONDS = 120.0

_server = get_context("forkserver")
_server.set_forkserver_preload(["regard.training", "helpers.fault_injection"])


def kill_self(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def write_half(path):
    """Truncate a file to its half, as if the process had been killed while it wrote."""
    os.truncate(path, Path(path).stat().st_size // 2)


def tear(path, text):
    """Append half of a line, as if the process had been killed while it wrote."""
    with path.open("a") as file:
        file.write(text[: len(text) // 2])


def inject(point, number, act):
    """Call `act` at a call of a function, counted from 0: before it, or else after it if odd."""
    called = count()

    def wrap(function, before=None):
        def wrapped(*arguments, **options):
            is_due = next(called) == number
            if is_due and (before is not None or number % 2 == 0):
                if before is not None:
                    before(*arguments)
                act()
            try:
                return function(*arguments, **options)
            finally:  # the file to unlink may not exist
                if is_due:
                    act()

        return wrapped

    if point == "fsync":
        os.fsync = wrap(os.fsync)
    elif point == "rename":
        os.replace = wrap(os.replace)
    elif point == "unlink":
        os.unlink = wrap(os.unlink)
    else:
        files._sync = wrap(files._sync, lambda path: path.is_file() and write_half(path))
        files.append_text = wrap(files.append_text, tear)
    return called


def _run(tsv, out, point, number, counts):
    torch.set_num_threads(1)
    called = inject(point, number, kill_self) if point in POINTS else None
    train(tsv, out, settings=SETTINGS, echo=lambda line: None)
    if counts is not None:
        Path(counts).write_text(json.dumps(next(called)))


def run_training(tsv, out, point=None, number=-1, counts=None, seconds=None):
    """Train in another process; return its exit code.

    Args:
        tsv: the pairs.
        out: the run folder.
        point: one of `POINTS`, at whose call `number` the process kills itself.
        number: of the call; -1 never kills.
        counts: file for the number of calls.
        seconds: kill the process from outside this long after its folder exists.
    """
    process = _server.Process(target=_run, args=(tsv, out, point, number, counts))
    process.start()
    if seconds is not None:
        end = time.monotonic() + START_TIMEOUT_SECONDS
        while not out.exists() and process.is_alive() and time.monotonic() < end:
            time.sleep(0.001)
        process.join(seconds)
        process.kill()
    process.join()
    return process.exitcode
