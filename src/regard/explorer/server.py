"""The HTTP server: binds the port, builds the app, runs uvicorn until SIGINT or SIGTERM."""

import secrets
import signal
import socket
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import torch
import uvicorn
from starlette.types import ASGIApp

from regard.demo import load_or_train
from regard.errors import RegardError
from regard.explorer import gold_alignments
from regard.explorer.app import create_app
from regard.explorer.middleware import ServerAddress, secure_app
from regard.explorer.runs import RunRegistry
from regard.explorer.timeouts import TimeoutH11Protocol
from regard.explorer.traces import TraceRegistry
from regard.explorer.workers import REQUEST_TIMEOUT_SECONDS

MAX_CONNECTIONS = 512  # each is an open file, of which a process may have about a thousand
TOKEN_BYTES = 24


def serve(
    runs: Sequence[Path],
    traces: Sequence[Path],
    host: str,
    port: int,
    *,
    open_page: bool = False,
    echo: Callable[[str], None] = print,
) -> None:
    """Serve the explorer until SIGINT or SIGTERM; requests in progress are finished.

    Args:
        runs: Run folders; the demo's run if neither runs nor traces are given.
        traces: Trace files.
        host: Address to listen on. Any but a loopback address requires a token, which is random
            and part of the printed URL.
        port: Port to listen on; 0 picks a free one.
        open_page: Whether to open the page in a browser.
        echo: Prints messages for the user.

    Raises:
        RegardError: If the port cannot be bound, or a path is no run or no trace.
    """
    with bind_socket(host, port) as listener:
        address = ServerAddress(host, listener.getsockname()[1])
        trace_registry = TraceRegistry(traces)
        if not (runs or traces):
            echo("No run given: using the demo's model, which is trained once and cached.")
            runs = [load_or_train().folder.path]
        run_registry = RunRegistry(runs)
        gold_alignments.preload(map(run_registry.phrasebook, run_registry.names))
        token = None if address.is_loopback else secrets.token_urlsafe(TOKEN_BYTES)
        url = address.url if token is None else f"{address.url}?token={token}"
        torch.set_num_threads(1)  # of each worker
        app = secure_app(create_app(run_registry, trace_registry), address, token)

        def announce() -> None:
            echo(f"The explorer is at {url}  (Ctrl-C stops it)")
            if open_page:
                # in a thread: a text browser blocks until it is closed
                Thread(target=webbrowser.open, args=(url,), daemon=True).start()

        _Server(uvicorn_config(app), on_started=announce).run([listener])


def uvicorn_config(app: ASGIApp) -> uvicorn.Config:
    """Return uvicorn's configuration: HTTP/1.1 only, quiet, with limits and timeouts."""
    return uvicorn.Config(
        app,
        http=TimeoutH11Protocol,
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=int(REQUEST_TIMEOUT_SECONDS) + 5,
    )


class _Server(uvicorn.Server):
    """Uvicorn's server with a callback; SIGINT and SIGTERM end it with exit code 0."""

    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals as uvicorn does, but do not raise them again after the shutdown."""
        previous = {
            number: signal.signal(number, self.handle_exit)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


@contextmanager
def bind_socket(host: str, port: int) -> Iterator[socket.socket]:
    """Yield a listening socket; bind it first, so that a taken port is reported before training."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise RegardError(f"cannot listen on {host!r}: {error.strerror}") from error
    except UnicodeError as error:  # an empty label, or one of more than 63 characters
        raise RegardError(f"cannot listen on {host!r}: invalid host name") from error
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            listener.listen()  # before that, other sockets may bind to the port too
        except OSError as error:
            raise RegardError(
                f"cannot listen on port {port} of {host}: {error.strerror}; "
                f"--port {port + 1 if 0 < port < 65535 else 0} may be free"
            ) from error
        yield listener
