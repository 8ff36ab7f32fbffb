"""Processes that torchrun started share the work of `regard translate` and `regard score`.

The first process reads the input, sends items to the others, and prints; they need no input, but
the same run. Items and results are sent as JSON, point to point, over gloo.
"""

import json
import os
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

import torch
from torch import distributed

from regard import __version__
from regard._support.resources import available_threads, single_threaded
from regard._support.worker_pool import WorkerPool
from regard.errors import RegardError
from regard.runs import Run, RunTasks, load, parameters
from regard.training.distributed import connect_processes, launched_processes

JOIN_TIMEOUT = timedelta(minutes=10)  # for all processes to start
IDLE_TIMEOUT = timedelta(days=7)  # for the next item: stdin may be a terminal
FUNCTIONS = ("translate", "nll", "align")  # of `RunTasks`
STDERR = 2

Result = TypeVar("Result")


@contextmanager
def share_work(
    path: Path, engine: str = "auto", quantization: str | None = None
) -> Iterator[tuple[Run, WorkerPool]]:
    """Load a run, and share work with the other processes that torchrun started, if any did.

    In all processes but the first this does not return: they work until the first one has ended.

    Args:
        path: the run folder, which each host needs.
        engine: as for `regard.load`.
        quantization: as for `regard.load`.

    Raises:
        RegardError: if the run cannot be loaded, differs between the processes, or another
            process ended.
    """
    if (launched_processes() or 1) == 1:
        loaded = load(path, engine=engine, quantization=quantization)
        with WorkerPool() as pool:
            yield loaded, pool
        return
    group = _interruptible(_join)
    rank = distributed.get_rank()
    try:
        own, problem = load(path, engine=engine, quantization=quantization), ""
    except RegardError as error:
        own, problem = None, str(error)
    if rank > 0:
        _serve(own, problem, group)
    threads = _interruptible(lambda: _compare(own, problem, group))
    assert own is not None
    remotes = [
        RemoteThread(rank, thread, group)
        for rank, count in enumerate(threads, start=1)
        for thread in range(count)
    ]
    with WorkerPool(remotes=remotes) as pool:
        yield own, pool
    distributed.destroy_process_group()


class RemoteFailure(Exception):
    """Raised for an unexpected error in another process, with its traceback."""


class RemoteThread:
    """One thread of another process, as the first process calls it.

    Args:
        rank: of the process.
        thread: number of the thread, from 0.
        group: all processes.
    """

    def __init__(self, rank: int, thread: int, group: distributed.ProcessGroup) -> None:
        self.rank, self.thread, self.group = rank, thread, group

    def call(self, function: str, item: Any) -> Any:
        """Return the result of a function of the other process's `RunTasks`."""
        _send([function, item], self.rank, self.group, self.thread + 1)
        answer = _receive(self.rank, self.group, self.thread + 1)
        if "error" in answer:
            raise RegardError(answer["error"])
        if "failure" in answer:
            raise RemoteFailure(f"process {self.rank} failed:\n{answer['failure']}")
        return answer["result"]

    def close(self) -> None:
        """Let the thread end, unless its process has ended before."""
        with suppress(RegardError):
            _send(None, self.rank, self.group, self.thread + 1)


def _join() -> distributed.ProcessGroup:
    """Connect all processes, and return a group for sending items."""
    group, _ = connect_processes("gloo", JOIN_TIMEOUT, IDLE_TIMEOUT)
    return group


def _compare(run: Run | None, problem: str, group: distributed.ProcessGroup) -> list[int]:
    """Return the threads of each other process; raise unless all have loaded the same run."""
    greetings = [_receive(rank, group) for rank in range(1, group.size())]
    own = "" if run is None else _fingerprint(run)
    for rank, greeting in enumerate(greetings, start=1):
        where = f"process {rank} on {greeting['host']}"
        if not problem and greeting["problem"]:
            problem = f"{where}: {greeting['problem']}"
        elif not problem and greeting["fingerprint"] != own:
            problem = (
                f"all processes must have the same run and version of regard, but {where} has "
                "others than the first; copy the run folder to its host"
            )
    for rank in range(1, group.size()):
        _send(not problem, rank, group)
    if problem:
        raise RegardError(problem)
    return [greeting["threads"] for greeting in greetings]


def _serve(run: Run | None, problem: str, group: distributed.ProcessGroup) -> None:
    """Compute items for the first process until it has no more; then end this process.

    The main thread only waits, so that Ctrl-C ends it at once: threads that wait for messages
    cannot be interrupted.
    """
    ended: SimpleQueue[BaseException | None] = SimpleQueue()
    threads = available_threads()
    greeting = {
        "host": socket.gethostname(),
        "problem": problem,
        "fingerprint": "" if run is None else _fingerprint(run),
        "threads": threads,
    }

    def greet() -> bool:
        _send(greeting, 0, group)
        return bool(_receive(0, group))

    def work(thread: int) -> None:
        assert run is not None
        try:
            _compute(RunTasks(run.model, run.tokenizers, engine=run.engine), thread, group)
            ended.put(None)
        except BaseException as error:
            ended.put(error)

    try:
        if not _interruptible(greet):
            _exit(1)  # the first process has printed why
        for thread in range(threads):
            Thread(target=work, args=(thread,), daemon=True).start()
        for _ in range(threads):
            if error := ended.get():
                raise error
    except KeyboardInterrupt:
        _exit(130)
    except RegardError:
        _exit(1, "regard: the first process ended unexpectedly")
    _exit(0)


def _compute(tasks: RunTasks, thread: int, group: distributed.ProcessGroup) -> None:
    """Compute the items for one thread of this process until there are no more."""
    single_threaded()
    functions = {name: getattr(tasks, name) for name in FUNCTIONS}
    while (message := _receive(0, group, thread + 1)) is not None:
        name, item = message
        try:
            answer = {"result": functions[name](item)}
        except RegardError as error:
            answer = {"error": str(error)}
        except Exception:
            answer = {"failure": traceback.format_exc()}
        _send(answer, 0, group, thread + 1)


def _exit(code: int, message: str = "") -> None:
    """End this process at once, although threads may still wait for messages."""
    if message:
        os.write(STDERR, f"{message}\n".encode())
    sys.stderr.flush()
    os._exit(code)


def _fingerprint(run: Run) -> str:
    """Return a hash of the version, the settings, the tokenizers and the parameters."""
    settings = json.dumps(run.settings.to_dict(), sort_keys=True)
    model = parameters.digest(run.model.state_dict())
    parts = (__version__, settings, run.tokenizers.digest, model)
    return sha256("\n".join(parts).encode()).hexdigest()


def _interruptible(function: Callable[[], Result]) -> Result:
    """Run a function that blocks in C++ in another thread, so that Ctrl-C ends the wait for it."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future.result()


def _send(message: Any, rank: int, group: distributed.ProcessGroup, tag: int = 0) -> None:
    """Send a message that JSON can hold; tag 0 is for greetings, n + 1 for thread n."""
    data = torch.frombuffer(bytearray(json.dumps(message).encode()), dtype=torch.uint8)
    with _name_lost_processes():
        distributed.send(torch.tensor([len(data)]), rank, group, tag)
        distributed.send(data, rank, group, tag)


def _receive(rank: int, group: distributed.ProcessGroup, tag: int = 0) -> Any:
    size = torch.zeros(1, dtype=torch.long)
    with _name_lost_processes():
        distributed.recv(size, rank, group, tag)
        data = torch.empty(int(size), dtype=torch.uint8)
        distributed.recv(data, rank, group, tag)
    return json.loads(data.numpy().tobytes())


@contextmanager
def _name_lost_processes() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise RegardError("another process of this command ended; run the command again") from error
