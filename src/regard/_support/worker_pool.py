"""Threads of this process, and of other processes, that share the items of a job."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Condition, Event, Thread
from typing import Any, Protocol, TypeVar, runtime_checkable

from regard._support.resources import available_threads, restore_num_threads, single_threaded

ITEMS_PER_WORKER = 2  # that are read ahead: one in work, one waiting
EXIT_TIMEOUT_SECONDS = 30.0  # for the item that a worker is computing

Label = TypeVar("Label")
Function = Callable[[Any], Any]
Group = tuple[Label, list[Any]]


@runtime_checkable
class Remote(Protocol):
    """A thread of another process that computes one item at a time."""

    def call(self, function: str, item: Any) -> Any:
        """Return the result of a function, by its name; block until it is there."""

    def close(self) -> None:
        """Let the thread end."""


class WorkerPool:
    """Workers that compute items, each by itself, in threads of this and of other processes.

    Every item is computed by a single thread: results do not depend on the number of workers.
    Results come in the order of the items, and few items are read ahead, so that a stream of any
    length needs little memory. The items are read in a thread of their own: a result is returned
    while the next item is still being waited for.

    Args:
        threads: number of threads of this process; `available_threads()` by default.
        remotes: threads of other processes.
    """

    def __init__(self, threads: int | None = None, remotes: Sequence[Remote] = ()) -> None:
        self.is_closing = Event()  # functions may poll it, to end early
        self._queue: SimpleQueue[tuple[Function, Any, Future[Any]] | None] = SimpleQueue()
        self._remotes = remotes
        self._cleanup = ExitStack()
        self._cleanup.enter_context(restore_num_threads())
        count = available_threads() if threads is None else threads
        targets: list[Callable[[], None]] = [self._compute_here for _ in range(count)]
        targets += [partial(self._compute_there, remote) for remote in remotes]
        self._threads = [Thread(target=target, daemon=True) for target in targets]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> "WorkerPool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def map(self, function: Function, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the function's results in the order of the items.

        Args:
            function: a function of one item. Other processes have it under the same name, and send
                items and results as JSON.
            items: the items.
        """
        groups = ((None, [item]) for item in items)
        for _, (result,) in self.map_groups(function, groups):
            yield result

    def map_groups(
        self, function: Function, groups: Iterable[Group[Label]]
    ) -> Iterator[Group[Label]]:
        """Yield each group's label with the results of its items, in the order of the groups.

        Args:
            function: as in `map`.
            groups: labels, and the items that belong to them.
        """
        reader = _Reader(self._submit, function, groups, ITEMS_PER_WORKER * len(self._threads))
        try:
            while (group := reader.next_group()) is not None:
                label, futures = group
                yield label, [future.result() for future in futures]
                reader.release(len(futures))
        finally:
            reader.is_stopped.set()
            reader.release(0)

    def close(self) -> None:
        """Drop items that were not started, and let all workers end."""
        self.is_closing.set()
        with suppress(Empty):
            while True:
                self._queue.get_nowait()
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join(EXIT_TIMEOUT_SECONDS)
        self._cleanup.close()

    def _submit(self, function: Function, item: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        self._queue.put((function, item, future))
        return future

    def _compute_here(self) -> None:
        single_threaded()
        self._work(lambda function, item: function(item))

    def _compute_there(self, remote: Remote) -> None:
        self._work(lambda function, item: remote.call(function.__name__, item))
        remote.close()

    def _work(self, compute: Callable[[Function, Any], Any]) -> None:
        while (task := self._queue.get()) is not None:
            function, item, future = task
            try:
                future.set_result(compute(function, item))
            except BaseException as error:
                future.set_exception(error)


class _Reader:
    """A thread that reads groups of items, and submits them while few are unfinished."""

    def __init__(
        self,
        submit: Callable[[Function, Any], "Future[Any]"],
        function: Function,
        groups: Iterable[Group[Any]],
        max_items: int,
    ) -> None:
        self.is_stopped = Event()
        self._submit, self._function, self._groups = submit, function, groups
        self._max_items = max_items
        self._changed = Condition()
        self._num_items = 0  # submitted, and not yet released
        self._read: SimpleQueue[tuple[Any, list[Future[Any]]] | BaseException | None] = (
            SimpleQueue()
        )
        Thread(target=self._run, daemon=True).start()

    def next_group(self) -> tuple[Any, list["Future[Any]"]] | None:
        """Return the next group's label and the futures of its items; None at the end."""
        group = self._read.get()
        if isinstance(group, BaseException):
            raise group
        return group

    def release(self, count: int) -> None:
        """Allow for as many other items."""
        with self._changed:
            self._num_items -= count
            self._changed.notify()

    def _run(self) -> None:
        try:
            for label, items in self._groups:
                with self._changed:
                    self._changed.wait_for(
                        lambda: self._num_items < self._max_items or self.is_stopped.is_set()
                    )
                    self._num_items += len(items)
                if self.is_stopped.is_set():
                    return
                futures = [self._submit(self._function, item) for item in items]
                self._read.put((label, futures))
            self._read.put(None)
        except BaseException as error:
            self._read.put(error)
