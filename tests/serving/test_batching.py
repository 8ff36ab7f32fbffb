import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import pytest

from regard.serving import DynamicBatcher, QueueFullError

pytestmark = pytest.mark.anyio
WAIT_SECONDS = 60  # on a busy machine


class Recorder:
    """Doubles numbers, once `proceed` is set; records the batches."""

    def __init__(self):
        self.batches, self.proceed = [], threading.Event()
        self.proceed.set()

    def __call__(self, key, items, should_stop):
        self.batches.append((key, items))
        assert self.proceed.wait(WAIT_SECONDS)
        if key == "broken":
            raise ValueError("broken")
        return [2 * item for item in items]


@asynccontextmanager
async def running(process, **options):
    with ThreadPoolExecutor() as executor:
        batcher = DynamicBatcher(process, executor, **options)
        task = asyncio.create_task(batcher.run())
        try:
            yield batcher
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def until(condition):
    async with asyncio.timeout(WAIT_SECONDS):
        while not condition():
            await asyncio.sleep(0.001)


async def test_concurrent_requests_share_one_batch_and_get_their_own_results():
    process = Recorder()
    async with running(process, max_wait_seconds=0.05) as batcher:
        results = await asyncio.gather(*(batcher.submit("a", [n, n + 10]) for n in range(5)))
    assert results == [[2 * n, 2 * n + 20] for n in range(5)]
    assert [len(items) for _, items in process.batches] == [10]


async def test_items_collect_while_the_threads_are_busy():
    process = Recorder()
    process.proceed.clear()
    async with running(process, max_wait_seconds=0.0) as batcher:
        first = asyncio.create_task(batcher.submit("a", [1]))
        await until(lambda: process.batches)
        later = [asyncio.create_task(batcher.submit("a", [n])) for n in (2, 3, 4)]
        await asyncio.sleep(0)
        process.proceed.set()
        await asyncio.gather(first, *later)
    assert process.batches == [("a", [1]), ("a", [2, 3, 4])]


async def test_batches_have_at_most_the_maximum_and_one_disables_batching():
    for size, expected in [(3, [3, 3, 1]), (1, [1] * 7)]:
        process, sizes = Recorder(), []
        async with running(process, max_batch_size=size, on_batch=sizes.append) as batcher:
            assert await batcher.submit("a", range(7)) == [0, 2, 4, 6, 8, 10, 12]
        assert sizes == expected


async def test_keys_are_never_mixed_and_take_turns():
    process = Recorder()
    async with running(process, max_batch_size=2, max_wait_seconds=0.05) as batcher:
        await asyncio.gather(batcher.submit("a", range(4)), batcher.submit("b", [7]))
    assert process.batches == [("a", [0, 1]), ("b", [7]), ("a", [2, 3])]


async def test_items_beyond_the_queue_are_refused_and_the_others_served():
    process = Recorder()
    process.proceed.clear()
    async with running(process, max_queue_size=3) as batcher:
        first = asyncio.create_task(batcher.submit("a", [1]))
        await until(lambda: process.batches)
        waiting = asyncio.create_task(batcher.submit("a", [2, 3]))
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError):
            await batcher.submit("a", [4, 5])
        process.proceed.set()
        assert await asyncio.gather(first, waiting) == [[2], [4, 6]]


async def test_cancelled_items_are_not_processed():
    process = Recorder()
    process.proceed.clear()
    async with running(process) as batcher:
        first = asyncio.create_task(batcher.submit("a", [1]))
        await until(lambda: process.batches)
        cancelled = asyncio.create_task(batcher.submit("a", [2]))
        last = asyncio.create_task(batcher.submit("a", [3]))
        await asyncio.sleep(0)
        cancelled.cancel()
        process.proceed.set()
        await asyncio.gather(first, last)
    assert process.batches == [("a", [1]), ("a", [3])]


async def test_error_reaches_the_requests_of_its_batch_only():
    async with running(Recorder()) as batcher:
        with pytest.raises(ValueError, match="broken"):
            await batcher.submit("broken", [1])
        assert await batcher.submit("a", [1]) == [2]
