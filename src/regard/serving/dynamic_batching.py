"""Dynamic batching: items that arrive within a few milliseconds are processed together."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_BATCH_SIZE = 64
MAX_WAIT_SECONDS = 0.004  # for more items, when a thread is free
MAX_QUEUE_SIZE = 1024


class QueueFullError(Exception):
    """Raised for items beyond the capacity of the queue."""


@dataclass(slots=True)
class _Pending(Generic[Item, Result]):
    item: Item
    result: "asyncio.Future[Result]"


class DynamicBatcher(Generic[Key, Item, Result]):
    """Queue of single items, with a limit, that threads process in batches.

    Items of one batch have equal keys. While all threads are busy, items collect in the queue, so
    that batches grow with the load; when a thread is free, the first item waits a few milliseconds
    for others. Keys take turns.

    Args:
        process: called in a thread with a key, a batch of items and a function that returns whether
            no request waits for them any more; returns a result for each item.
        executor: the threads.
        threads: how many batches run at the same time.
        max_batch_size: items of a batch.
        max_wait_seconds: time that the first item of a batch waits for others.
        max_queue_size: items that may wait.
        on_batch: called with the size of every batch.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> async def square(numbers):
        ...     with ThreadPoolExecutor() as pool:
        ...         process = lambda key, items, should_stop: [item * item for item in items]
        ...         async with asyncio.TaskGroup() as tasks:
        ...             batcher = DynamicBatcher(process, pool, on_batch=print)
        ...             task = tasks.create_task(batcher.run())
        ...             requests = [batcher.submit("square", [number]) for number in numbers]
        ...             print(await asyncio.gather(*requests))
        ...             task.cancel()
        >>> asyncio.run(square([1, 2, 3]))
        3
        [[1], [4], [9]]
    """

    def __init__(
        self,
        process: Callable[[Key, list[Item], Callable[[], bool]], Sequence[Result]],
        executor: Executor,
        threads: int = 1,
        *,
        max_batch_size: int = MAX_BATCH_SIZE,
        max_wait_seconds: float = MAX_WAIT_SECONDS,
        max_queue_size: int = MAX_QUEUE_SIZE,
        on_batch: Callable[[int], object] = lambda size: None,
    ) -> None:
        self._process = process
        self._executor = executor
        self._max_batch_size = max_batch_size
        self._max_wait_seconds = max_wait_seconds
        self._max_queued_items = max_queue_size
        self._on_batch = on_batch
        self._free_threads = asyncio.Semaphore(threads)
        self._queues: OrderedDict[Key, deque[_Pending[Item, Result]]] = OrderedDict()
        self._has_items, self._has_batch = asyncio.Event(), asyncio.Event()
        self._num_queued = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def submit(self, key: Key, items: Sequence[Item]) -> list[Result]:
        """Queue items and return their results; cancelled, they leave the queue.

        Raises:
            QueueFullError: if the queue cannot take all of them.
        """
        if self._num_queued + len(items) > self._max_queued_items:
            raise QueueFullError
        loop = asyncio.get_running_loop()
        pending = [_Pending[Item, Result](item, loop.create_future()) for item in items]
        self._queues.setdefault(key, deque()).extend(pending)
        self._num_queued += len(items)
        self._has_items.set()
        if self._num_queued >= self._max_batch_size:
            self._has_batch.set()
        return await asyncio.gather(*(each.result for each in pending))

    async def run(self) -> None:
        """Process batches until cancelled; those in progress are abandoned then."""
        try:
            while True:
                await self._free_threads.acquire()
                key, batch = await self._next_batch()
                self._on_batch(len(batch))
                task = asyncio.create_task(self._process_batch(key, batch))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        finally:
            for task in self._tasks:
                task.cancel()

    async def _next_batch(self) -> tuple[Key, list[_Pending[Item, Result]]]:
        while True:
            await self._has_items.wait()
            if self._max_batch_size > 1 and self._max_wait_seconds > 0:
                try:
                    async with asyncio.timeout(self._max_wait_seconds):
                        await self._has_batch.wait()
                except TimeoutError:
                    pass
            key, batch = self._take()
            if batch:
                return key, batch

    def _take(self) -> tuple[Key, list[_Pending[Item, Result]]]:
        """Remove a batch from the queue of the key whose turn it is, without cancelled items."""
        key, queue = self._queues.popitem(last=False)
        batch: list[_Pending[Item, Result]] = []
        while queue and len(batch) < self._max_batch_size:
            pending = queue.popleft()
            self._num_queued -= 1
            if not pending.result.done():
                batch.append(pending)
        if queue:
            self._queues[key] = queue  # at the end: the others come first
        if not self._queues:
            self._has_items.clear()
        if self._num_queued < self._max_batch_size:
            self._has_batch.clear()
        return key, batch

    async def _process_batch(self, key: Key, batch: list[_Pending[Item, Result]]) -> None:
        def is_abandoned() -> bool:
            return all(pending.result.cancelled() for pending in batch)

        items = [pending.item for pending in batch]
        loop = asyncio.get_running_loop()
        try:
            results = await loop.run_in_executor(
                self._executor, self._process, key, items, is_abandoned
            )
        except Exception as error:
            for pending in batch:
                if not pending.result.done():
                    pending.result.set_exception(error)
        else:
            for pending, result in zip(batch, results, strict=True):
                if not pending.result.done():
                    pending.result.set_result(result)
        finally:
            self._free_threads.release()
