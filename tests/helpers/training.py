"""Start tiny training runs in this process, in another one, or in several."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager

import torch

from helpers.tiny_corpus import TINY, tiny_corpus
from regard.config import parse_assignment
from regard.runs import RunFolder, parameters
from regard.training import Callback, Checkpoints, train

# the grouping of sums depends on the number of threads: as many as in the tests themselves
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}
START_TIMEOUT_SECONDS = 60.0


def discard(line):
    pass


class FinalState(Callback):
    """Keeps the state at the end of training."""

    def __init__(self):
        self.state = None

    def on_end(self, state):
        self.state = state


def train_tiny(out, *assignments, corpus=None, echo=discard):
    """Train on the tiny corpus with some settings changed; return the final state."""
    final = FinalState()
    updates = [TINY, *map(parse_assignment, assignments)]
    train(corpus or tiny_corpus(), out, settings=updates, callbacks=[final], echo=echo)
    return final.state


def load_parameters(out):
    return parameters.load(RunFolder(out).model)[0]


def are_equal(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def assert_close(one, other):
    for name, tensor in one.items():
        if not name.endswith("key.bias"):  # softmax ignores it: its gradient is rounding noise
            torch.testing.assert_close(tensor, other[name], rtol=1e-3, atol=1e-4)


def checkpoints_of(out):
    return Checkpoints(RunFolder(out).checkpoints)


def stop_after(out, last):
    """Return a replacement of `stop_requested` that requests a stop after step `last`."""

    @contextmanager
    def requested():
        steps = checkpoints_of(out).state_steps()
        step = steps[-1] if steps else 0

        def should_stop():  # polled once a step
            nonlocal step
            step += 1
            return step >= last

        yield should_stop

    return requested


def command(tsv, out, *assignments):
    """Return the command line that trains on a file with the tiny settings."""
    settings = {
        f"{section}.{key}": value for section in TINY for key, value in TINY[section].items()
    }
    changes = [*(f"{name}={value}" for name, value in settings.items()), *assignments]
    options = [word for change in changes for word in ("--set", change)]
    return [sys.executable, "-m", "regard", "train", str(tsv), "--out", str(out), *options]


def two_processes(single):
    """Return the command line that starts two processes with torchrun."""
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    return [single[0], *torchrun, *single[1:]]


def run_to_end(command):
    """Run a command that must succeed; return its stderr."""
    done = subprocess.run(command, capture_output=True, text=True, env=ONE_THREAD)
    assert done.returncode == 0, done.stderr
    return done.stderr


def kill_when(command, condition, timeout=START_TIMEOUT_SECONDS):
    """Start a command, and kill it (SIGKILL) once a condition holds; return its exit code."""
    process = subprocess.Popen(command, stderr=-1, stdout=-1, env=ONE_THREAD)
    start = time.monotonic()
    while not condition() and process.poll() is None and time.monotonic() - start < timeout:
        time.sleep(0.002)
    process.kill()
    process.communicate()
    return process.returncode
