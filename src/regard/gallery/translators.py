"""Recurrent translators with attention and without, trained side by side and kept."""

import sys
from subprocess import Popen

from regard.lesson import found, kept
from regard.run import Run

MODELS = ("bahdanau", "blind")
MINUTES = 1.0  # each, on a core of its own
LEARN = "import sys; from regard.lesson import kept; kept('fr', sys.argv[1], float(sys.argv[2]))"


def with_and_without() -> tuple[Run, Run]:
    """Give both translators of French; those that are not there yet learn at the same time."""
    missing = [model for model in MODELS if not found("fr", model, MINUTES)]
    learning = [Popen([sys.executable, "-c", LEARN, model, str(MINUTES)]) for model in missing]
    for process in learning:
        process.wait()
    seeing, blind = (kept("fr", model, MINUTES) for model in MODELS)
    return seeing, blind
