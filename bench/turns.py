"""Interleave trainers that run in processes of their own: one works while the others wait.

Only the standard library is used, so that a worker can live in any environment.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

EXIT_TIMEOUT_SECONDS = 20


class Turn(NamedTuple):
    """What a worker did in one turn."""

    tokens: int  # target tokens, end of sentence included, padding not
    positions: int  # target positions of its batches, padding included
    steps: int
    seconds: float

    @property
    def speed(self) -> float:
        """Target tokens per second."""
        return self.tokens / self.seconds


class Turns:
    """A worker's side: notified of every step, it blocks the training until the next turn.

    A turn consists of whole steps, until its time is over, with everything between two steps.
    """

    def __init__(self) -> None:
        # what a library prints goes to stderr; stdout is for the results
        self._results = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        self._seconds = self._start = 0.0
        self._tokens = self._positions = self._steps = 0
        self._wait()

    def step(self, tokens: int, positions: int) -> bool:
        """Count a step; at the end of a turn report it, and wait for the next one.

        Returns:
            Whether there is another step to take.
        """
        self._tokens, self._positions = self._tokens + tokens, self._positions + positions
        self._steps += 1
        seconds = time.perf_counter() - self._start
        if seconds < self._seconds:
            return True
        turn = Turn(self._tokens, self._positions, self._steps, seconds)
        print(json.dumps(turn), file=self._results, flush=True)
        return self._wait()

    def _wait(self) -> bool:
        line = sys.stdin.readline()
        self._seconds = float(line or "inf")
        self._tokens = self._positions = self._steps = 0
        self._start = time.perf_counter()
        return bool(line)


class Worker:
    """The benchmark's side: starts a worker process, and gives it turns."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, Any]) -> None:
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )

    def turn(self, seconds: float) -> Turn:
        """Let the worker train for some seconds, to the end of a step."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(seconds, file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a worker exited early: {self._process.args}")
        return Turn(*json.loads(line))

    def close(self) -> None:
        """Let the worker exit; kill it if it does not."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=EXIT_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._process.stdout.close()
