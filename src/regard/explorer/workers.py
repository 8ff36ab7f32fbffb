"""Worker pool with a queue limit, timeouts and cancellation, for requests that run a model."""

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from threading import Event
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import torch
from starlette.exceptions import HTTPException
from starlette.types import Receive

from regard._support.resources import usable_cores

Result = TypeVar("Result")

NUM_WORKERS = min(usable_cores(), 4)
MAX_QUEUED_REQUESTS = 16
REQUEST_TIMEOUT_SECONDS = 30.0  # from arrival to response, time in the queue included


class Cancelled(Exception):
    """Raised by work that stops because its token was cancelled."""


class CancelToken:
    """Thread-safe flag by which a request asks its work to stop.

    Example:
        >>> token = CancelToken()
        >>> token.raise_if_cancelled()
        >>> token.cancel()
        >>> token.is_cancelled()
        True
    """

    def __init__(self) -> None:
        self._event = Event()

    def cancel(self) -> None:
        """Ask the work to stop at its next check."""
        self._event.set()

    def is_cancelled(self) -> bool:
        """Return whether `cancel` was called; pass this as `should_stop` to a search."""
        return self._event.is_set()

    def raise_if_cancelled(self) -> None:
        """Raise `Cancelled` if `cancel` was called."""
        if self.is_cancelled():
            raise Cancelled


class RequestPool:
    """Worker threads for requests: a bounded queue, and a deadline for each request.

    Args:
        workers: how much work may run at the same time.
        queue_size: requests that may wait for a worker; further ones get 503 at once.
        timeout_seconds: time after which a request gets 503, whether it runs or waits.

    Example:
        >>> async def handle_request():
        ...     pool = RequestPool(workers=1)
        ...     return await pool.run(lambda token: "le chat", receive=anyio.sleep_forever)
        >>> anyio.run(handle_request)
        'le chat'
    """

    def __init__(
        self,
        workers: int = NUM_WORKERS,
        queue_size: int = MAX_QUEUED_REQUESTS,
        timeout_seconds: float = REQUEST_TIMEOUT_SECONDS,
    ) -> None:
        self._max_requests = workers + queue_size
        self._timeout_seconds = timeout_seconds
        self._workers = anyio.CapacityLimiter(workers)
        # work that was abandoned still occupies a worker but no longer counts for anyio,
        # so `_workers` limits the threads, and anyio does not
        self._threads = anyio.CapacityLimiter(math.inf)

    @property
    def num_requests(self) -> int:
        """Requests that run or wait, and abandoned work that has not stopped yet."""
        statistics = self._workers.statistics()
        return statistics.borrowed_tokens + statistics.tasks_waiting

    async def run(self, work: Callable[[CancelToken], Result], receive: Receive) -> Result:
        """Run work in a worker thread and return its result.

        When the deadline passes or the client disconnects, the token that the work gets is
        cancelled and the request leaves the pool at once; its thread is free again when the work
        has noticed.

        Args:
            work: function of a cancellation token, which it should check now and then.
            receive: the request's ASGI channel, on which a disconnect is announced.

        Raises:
            HTTPException: 503 with Retry-After if the queue is full or the deadline has passed;
                499 if the client has disconnected.
        """
        if self.num_requests >= self._max_requests:
            raise HTTPException(
                503, "the server is busy; try again in a moment", {"Retry-After": "1"}
            )
        token = CancelToken()
        outcome = Future[Result]()
        try:
            with anyio.move_on_after(self._timeout_seconds) as deadline:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(_cancel_on_disconnect, receive, tasks.cancel_scope)
                    await self._run_in_thread(work, token, outcome)
                    tasks.cancel_scope.cancel()
        finally:
            is_done = outcome.done()
            token.cancel()
            outcome.cancel()  # has no effect on work that has begun
        if is_done:
            return outcome.result()
        if deadline.cancelled_caught:
            message = f"the request took longer than {self._timeout_seconds:g} seconds"
            raise HTTPException(503, message, {"Retry-After": "5"})
        raise HTTPException(499, "the client has disconnected")

    async def _run_in_thread(
        self, work: Callable[[CancelToken], Result], token: CancelToken, outcome: Future[Result]
    ) -> None:
        """Wait for a worker and run the work; the worker is released when the outcome is known."""
        loop = asyncio.get_running_loop()

        def release_worker(_: "Future[Any]") -> None:
            with suppress(RuntimeError):  # the loop is closed: the server has stopped
                loop.call_soon_threadsafe(self._workers.release_on_behalf_of, token)

        await self._workers.acquire_on_behalf_of(token)
        outcome.add_done_callback(release_worker)
        await anyio.to_thread.run_sync(
            _execute, work, token, outcome, abandon_on_cancel=True, limiter=self._threads
        )


def _execute(
    work: Callable[[CancelToken], Result], token: CancelToken, outcome: "Future[Result]"
) -> None:
    """Run the work in this thread and record its outcome."""
    if not outcome.set_running_or_notify_cancel():
        return
    # one thread for each worker: decoding is many small steps, which gain nothing from more
    torch.set_num_threads(1)
    try:
        outcome.set_result(work(token))
    except BaseException as error:
        outcome.set_exception(error)


async def _cancel_on_disconnect(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
