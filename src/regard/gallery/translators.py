"""Recurrent translators with attention and without, trained side by side and kept."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import DEVNULL, Popen

from regard.demo.models import find_cached, load_or_train
from regard.runs import Run

MODELS = ("bahdanau", "no_attention")
MINUTES = 1.25  # each, on cores that other figures may share
LEARN = (
    "import sys; from regard.demo.models import load_or_train; "
    "load_or_train('fr', sys.argv[1], float(sys.argv[2]))"
)

_learning: dict[str, "Popen[bytes]"] = {}


def with_and_without() -> tuple[Run, Run]:
    """Give both translators of French; those that are not there yet learn at the same time."""
    _begin()
    while _learning:
        _learning.popitem()[1].wait()
    seeing, blind = (load_or_train("fr", model, MINUTES) for model in MODELS)
    return seeing, blind


@contextmanager
def learning_meanwhile() -> Iterator[None]:
    """Let the translators that are not there yet learn while something else is done."""
    _begin(unseen=True)
    try:
        yield
    finally:
        while _learning:  # no one has waited for them
            _learning.popitem()[1].terminate()


def _begin(unseen: bool = False) -> None:
    """Let those begin that are not there and not under way; one that fails will be seen to."""
    for model in MODELS:
        if model not in _learning and not find_cached("fr", model, MINUTES):
            command = [sys.executable, "-c", LEARN, model, str(MINUTES)]
            _learning[model] = Popen(command, stderr=DEVNULL if unseen else None)
