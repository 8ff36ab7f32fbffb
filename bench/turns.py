"""Let trainings in processes of their own take turns: one works while the others wait.

Only the standard library, so that a worker may live in any environment.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Turn(NamedTuple):
    """What a worker did in one turn."""

    tokens: int  # real target tokens, ends included
    cells: int  # target positions of its batches, padding included
    steps: int
    seconds: float

    @property
    def speed(self) -> float:
        """Real target tokens per second."""
        return self.tokens / self.seconds


class Turns:
    """A worker's side: told of each step, it holds the training until the next turn.

    A turn is whole steps, until its seconds are over, with all that lies between two steps.
    """

    def __init__(self) -> None:
        # what a library prints goes to stderr; stdout is for answers
        self._answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        self._wait()

    def step(self, tokens: int, cells: int) -> bool:
        """Take note of a step, and at the end of a turn wait for the next; say if there is one."""
        self._tokens, self._cells = self._tokens + tokens, self._cells + cells
        self._steps += 1
        seconds = time.perf_counter() - self._start
        if seconds < self._wanted:
            return True
        turn = Turn(self._tokens, self._cells, self._steps, seconds)
        print(json.dumps(turn), file=self._answers, flush=True)
        return self._wait()

    def _wait(self) -> bool:
        line = sys.stdin.readline()
        self._wanted = float(line or "inf")
        self._tokens = self._cells = self._steps = 0
        self._start = time.perf_counter()
        return bool(line)


class Worker:
    """The other side: starts a worker, and gives it turns."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, Any]) -> None:
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )

    def turn(self, seconds: float) -> Turn:
        """Let it work for so many seconds, to the end of a step."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(seconds, file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a worker ended: {self._process.args}")
        return Turn(*json.loads(line))

    def end(self) -> None:
        """Let it go."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
