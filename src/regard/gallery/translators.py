"""Recurrent translators with and without attention, trained side by side and cached."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import DEVNULL, Popen

from regard.demo import find_cached, load_or_train
from regard.runs import Run

MODELS = ("bahdanau", "no_attention")
TRAIN = """
import sys
from regard.demo import load_or_train
load_or_train("fr", sys.argv[1])
"""

_processes: dict[str, "Popen[bytes]"] = {}


def load_with_and_without_attention() -> tuple[Run, Run]:
    """Return both English-French translators, training the missing ones at the same time."""
    _start_training()
    while _processes:
        _processes.popitem()[1].wait()
    with_attention, without = (load_or_train("fr", model) for model in MODELS)
    return with_attention, without


@contextmanager
def train_in_background() -> Iterator[None]:
    """Train the missing translators while the block runs; stop them if nothing waits for them."""
    _start_training(quiet=True)
    try:
        yield
    finally:
        while _processes:
            _processes.popitem()[1].terminate()


def _start_training(quiet: bool = False) -> None:
    """Start a process for each translator that is neither cached nor in training.

    One that fails is trained again, with its error shown, when it is loaded.
    """
    for model in MODELS:
        if model not in _processes and not find_cached("fr", model):
            command = [sys.executable, "-c", TRAIN, model]
            _processes[model] = Popen(command, stderr=DEVNULL if quiet else None)
