"""The line in front of the model: a few workers, a few who wait, and nobody for ever."""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, TypeVar

import torch
from starlette.types import Receive

from regard.explorer.cancellation import Stop
from regard.explorer.errors import Refused

Result = TypeVar("Result")

WORKERS = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2, 4)
WAITING = 16  # requests that may wait for a worker
SECONDS = 30.0  # until a request has its answer, waiting included


class Line:
    """Workers with a thread each, and a bounded line of requests that wait for one."""

    def __init__(
        self, workers: int = WORKERS, waiting: int = WAITING, seconds: float = SECONDS
    ) -> None:
        self._room = workers + waiting
        self._seconds = seconds
        self._inside = 0
        self._lock = Lock()
        # many small steps: threads that share each of them would wait for one another
        self._pool = ThreadPoolExecutor(workers, "work", lambda: torch.set_num_threads(1))

    async def do(self, work: Callable[[Stop], Result], receive: Receive) -> Result:
        """Have the work done, unless the line is full, the client leaves or time is up."""
        stop = Stop()
        job = self._enter(work, stop)
        done = asyncio.wrap_future(job)
        done.add_done_callback(_seen)
        gone = asyncio.ensure_future(_leaves(receive))
        try:
            either: set[asyncio.Future[Any]] = {done, gone}
            await asyncio.wait(either, timeout=self._seconds, return_when=asyncio.FIRST_COMPLETED)
            if done.done():
                return done.result()
        finally:
            stop.say()
            job.cancel()  # drops it, if it has not begun
            gone.cancel()
        raise Refused(503, f"this took longer than {self._seconds:g} seconds", retry_after=5)

    def close(self) -> None:
        """Let the workers finish what they do, and go."""
        self._pool.shutdown(cancel_futures=True)

    def _enter(self, work: Callable[[Stop], Result], stop: Stop) -> Future[Result]:
        with self._lock:
            if self._inside >= self._room:
                raise Refused(503, "the server is busy; come again in a moment", retry_after=1)
            self._inside += 1
        job = self._pool.submit(_begin, work, stop)
        job.add_done_callback(self._leave)
        return job

    def _leave(self, _: "Future[Result]") -> None:
        with self._lock:
            self._inside -= 1


def _begin(work: Callable[[Stop], Result], stop: Stop) -> Result:
    stop.check()
    return work(stop)


async def _leaves(receive: Receive) -> None:
    """Wait until the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _seen(done: "asyncio.Future[Result]") -> None:
    """Look at what went wrong, so that asyncio does not report it as forgotten."""
    if not done.cancelled():
        done.exception()
