"""`serve`: binds the port and runs the translation server in one process or in several."""

import multiprocessing
import os
import re
import secrets
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from types import FrameType

from regard._support.resources import usable_cores
from regard.errors import RegardError
from regard.runs import check_engine, describe_engine
from regard.serving.app import create_app
from regard.serving.dynamic_batching import MAX_BATCH_SIZE, MAX_QUEUE_SIZE
from regard.serving.languages import LanguagePair, check_languages, parse_run
from regard.serving.middleware import secure_app
from regard.serving.prometheus import MULTIPROCESS_FOLDER, Metrics, forget_worker
from regard.serving.schemas import LIMITS, ServingLimits
from regard.serving.served_run import ServedRun
from regard.serving.service import RELOAD_INTERVAL_SECONDS, TranslationService
from regard.web import (
    MAX_CONCURRENT_REQUESTS,
    HTTPServer,
    ServerAddress,
    bind_socket,
    check_needs_token,
    connection_limit,
    uvicorn_config,
)

TOKEN_BYTES = 24
MIN_TOKEN_CHARACTERS = 16
MAX_WORKERS = 256


@dataclass(frozen=True, slots=True)
class ServingConfig:
    """What a worker process needs to know.

    Attributes:
        runs: run folders with their languages.
        token: secret that requests carry; None admits every request.
        engine: what translates; see `load`.
        quantization: of CTranslate2; see `load`.
        beam_size: number of beams; the runs' own if None.
        threads: how many batches a process translates at the same time.
        max_batch_size: lines of a batch; 1 disables dynamic batching.
        max_queue_size: lines that may wait in a process.
        reload_seconds: interval in which run folders are checked for changes.
        verbose: whether to print which engine translates with each run, and why.
        limits: largest values of a request.

    Raises:
        RegardError: if a number is out of range, or two runs have the same languages.
    """

    runs: tuple[tuple[Path, LanguagePair], ...]
    token: str | None = None
    engine: str = "auto"
    quantization: str | None = None
    beam_size: int | None = None
    threads: int = 1
    max_batch_size: int = MAX_BATCH_SIZE
    max_queue_size: int = MAX_QUEUE_SIZE
    reload_seconds: float = RELOAD_INTERVAL_SECONDS
    verbose: bool = False
    limits: ServingLimits = LIMITS

    def __post_init__(self) -> None:
        for name in ("threads", "max_batch_size", "max_queue_size"):
            if getattr(self, name) < 1:
                raise RegardError(f"{name} must be 1 or more, but it is {getattr(self, name)}")
        check_languages([languages for _, languages in self.runs])


def serve(
    runs: Sequence[str],
    host: str = "127.0.0.1",
    port: int = 5000,
    *,
    token: str | None = None,
    needs_token: bool = True,
    workers: int = 1,
    allowed_hosts: Sequence[str] = (),
    engine: str = "auto",
    quantization: str | None = None,
    beam_size: int | None = None,
    max_batch_size: int = MAX_BATCH_SIZE,
    max_queue_size: int = MAX_QUEUE_SIZE,
    verbose: bool = False,
    echo: Callable[[str], None] = print,
) -> None:
    """Serve translations until SIGINT or SIGTERM; requests in progress are finished.

    Args:
        runs: run folders, `RUN` or `RUN=en:fr`; see `parse_run`.
        host: address to listen on.
        port: port to listen on; 0 picks a free one.
        token: secret that requests carry; a random one, which is printed, if None.
        needs_token: False is for loopback addresses only, and gives access to every user of this
            machine.
        workers: number of processes, each with its own models and queue.
        allowed_hosts: further names that requests may be for, such as that of a proxy.
        engine: what translates; see `regard.load`.
        quantization: of CTranslate2; see `regard.load`.
        beam_size: number of beams; the runs' own if None.
        max_batch_size: lines that are translated together; 1 disables dynamic batching.
        max_queue_size: lines that may wait in a process; requests beyond them get 503.
        verbose: whether to print which engine translates with each run, and why.
        echo: prints messages for the user.

    Raises:
        RegardError: if the port cannot be bound, an argument is out of range, a path is no run, its
            languages are unknown, or `needs_token` is False for an address that is not loopback.

    Example:
        >>> serve(["demo-model"], host="0.0.0.0", needs_token=False)
        Traceback (most recent call last):
        regard.errors.RegardError: host=0.0.0.0 needs a token, ...
    """
    if not runs:
        raise RegardError("`serve` needs a run; demo-model is one that the package ships")
    if not 1 <= workers <= MAX_WORKERS:
        raise RegardError(f"workers must be from 1 to {MAX_WORKERS}, but it is {workers}")
    check_engine(engine, quantization)
    names = tuple(map(_check_host_name, allowed_hosts))
    config = ServingConfig(
        tuple(parse_run(run) for run in runs),
        _choose_token(host, token, needs_token),
        engine,
        quantization,
        beam_size,
        threads=max(usable_cores() // workers, 1),
        max_batch_size=max_batch_size,
        max_queue_size=max_queue_size,
        verbose=verbose,
    )
    with bind_socket(host, port) as listener:
        address = ServerAddress(host, listener.getsockname()[1], names)

        def announce() -> None:
            pairs = ", ".join(str(languages) for _, languages in config.runs)
            echo(f"Translating {pairs} at {address.url}  (Ctrl-C stops it)")
            if token is None and config.token is not None:
                echo(f"The token of this start is {config.token}")

        if workers == 1:
            serve_socket(config, address, listener, announce)
        else:
            _Supervisor(config, address, listener, workers).run(announce)


def serve_socket(
    config: ServingConfig,
    address: ServerAddress,
    listener: socket.socket,
    on_started: Callable[[], None] = lambda: None,
) -> None:
    """Load the runs and serve a listening socket in this process."""
    build_server(config, address, on_started).run([listener])


def build_server(
    config: ServingConfig,
    address: ServerAddress,
    on_started: Callable[[], None] = lambda: None,
) -> HTTPServer:
    """Load the runs and return a server for them."""
    runs = [
        ServedRun(
            path, languages, config.engine, config.quantization, config.beam_size, config.threads
        )
        for path, languages in config.runs
    ]
    if config.verbose:
        for served in runs:
            run = served.current.run
            description = describe_engine(run.engine, run.model, config.engine)
            print(f"{served.languages}: {description}", file=sys.stderr)
    metrics = Metrics()
    service = TranslationService(
        runs,
        metrics,
        config.limits,
        threads=config.threads,
        max_batch_size=config.max_batch_size,
        max_queue_size=config.max_queue_size,
        reload_seconds=config.reload_seconds,
    )
    max_requests = min(MAX_CONCURRENT_REQUESTS, connection_limit() // 2)
    app = secure_app(
        create_app(service), address, config.token, metrics, config.limits, max_requests
    )
    shutdown_seconds = int(config.limits.timeout_seconds) + 5
    return HTTPServer(
        uvicorn_config(app, shutdown_seconds=shutdown_seconds, has_lifespan=True), on_started
    )


def _check_host_name(name: str) -> str:
    """Return a name that Host headers are compared with, in lower case."""
    if not re.fullmatch(r"[\w.-]+|\[[0-9A-Fa-f:.]+\]", name, re.ASCII):
        raise RegardError(
            "allowed_hosts must be names such as translate.example.org, without scheme, port and "
            f"path, but one is {name!r}"
        )
    return name.lower()


def _choose_token(host: str, token: str | None, needs_token: bool) -> str | None:
    if not needs_token:
        if token is not None:
            raise RegardError("a token is given, but none is needed; leave one of the two out")
        check_needs_token(host, needs_token)
        return None
    if token is None:
        return secrets.token_urlsafe(TOKEN_BYTES)
    if not re.fullmatch("[!-~]*", token):
        raise RegardError("token must be ASCII characters without spaces, but it has others")
    if len(token) < MIN_TOKEN_CHARACTERS:
        raise RegardError(
            f"token must have at least {MIN_TOKEN_CHARACTERS} ASCII characters, but it has "
            f"{len(token)}"
        )
    return token


class _Supervisor:
    """Runs worker processes that share a listening socket, and replaces those that die."""

    def __init__(
        self, config: ServingConfig, address: ServerAddress, listener: socket.socket, workers: int
    ) -> None:
        self._config, self._address, self._listener = config, address, listener
        self._num_workers = workers
        self._context = multiprocessing.get_context("spawn")  # threads do not survive a fork
        self._workers: list[tuple[SpawnProcess, Event]] = []
        self._is_stopping = False
        self._wake_reader, self._wake_writer = socket.socketpair()

    def run(self, on_started: Callable[[], None]) -> None:
        """Run the workers until SIGINT or SIGTERM; they finish the requests in progress."""
        with ExitStack() as stack:
            for end in (self._wake_reader, self._wake_writer):  # closed after the handlers are gone
                stack.enter_context(end)
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="regard-metrics-"))
            os.environ[MULTIPROCESS_FOLDER] = folder  # the workers inherit it
            stack.callback(os.environ.pop, MULTIPROCESS_FOLDER)
            for number in (signal.SIGINT, signal.SIGTERM):
                stack.callback(signal.signal, number, signal.signal(number, self._stop))
            self._workers = [self._start() for _ in range(self._num_workers)]
            try:
                self._supervise(on_started)
            finally:
                self._listener.close()  # or clients would connect until the last worker ends
                for process, _ in self._workers:
                    process.terminate()
                for process, _ in self._workers:
                    process.join()

    def _supervise(self, on_started: Callable[[], None]) -> None:
        is_announced = False
        while not self._is_stopping:
            if not is_announced and all(ready.is_set() for _, ready in self._workers):
                is_announced = True
                on_started()
            sentinels = [process.sentinel for process, _ in self._workers]
            wait([*sentinels, self._wake_reader], timeout=None if is_announced else 0.1)
            if self._is_stopping:
                return
            for index, (process, ready) in enumerate(self._workers):
                if process.is_alive():
                    continue
                if not ready.is_set():
                    raise RegardError(
                        f"a worker ended with exit code {process.exitcode} before it could serve"
                    )
                forget_worker(process.pid, Path(os.environ[MULTIPROCESS_FOLDER]))
                self._workers[index] = self._start()

    def _start(self) -> tuple[SpawnProcess, Event]:
        ready = self._context.Event()
        process = self._context.Process(
            target=_run_worker, args=(self._config, self._address, self._listener, ready)
        )
        process.start()
        return process, ready

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._is_stopping = True
        self._wake_writer.send(b"\0")


def _run_worker(
    config: ServingConfig, address: ServerAddress, listener: socket.socket, ready: Event
) -> None:
    """Serve in a worker process."""
    try:
        serve_socket(config, address, listener, ready.set)
    except RegardError as error:  # a run that cannot be loaded
        sys.exit(f"regard: {error}")
