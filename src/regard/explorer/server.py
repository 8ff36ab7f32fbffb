"""The server: one port, until it is told to stop, and what runs then is finished."""

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

from regard.demo.models import load_or_train
from regard.errors import RegardError
from regard.explorer import gold_alignments
from regard.explorer.app import create_app
from regard.explorer.middleware import Address, Door
from regard.explorer.runs import Shelf
from regard.explorer.timeouts import Impatient
from regard.explorer.traces import Saved
from regard.explorer.workers import SECONDS, Line

CONNECTIONS = 512  # at a time; each is a file, of which a process may have a thousand or so

Say = Callable[[str], None]


def serve(
    runs: Sequence[Path],
    traces: Sequence[Path],
    host: str,
    port: int,
    *,
    open_page: bool = False,
    say: Say = print,
) -> None:
    """Serve the page and its API for some runs and traces, or for the demo's run."""
    with _bound(host, port) as listener:
        address = Address(host, listener.getsockname()[1])
        saved = Saved(traces)
        if not (runs or traces):
            say("No run was named, so the demo's model is taken; it is trained once, and kept.")
            runs = [load_or_train().folder.path]
        shelf = Shelf(runs)
        gold_alignments.prepare(map(shelf.phrasebook, shelf.names))
        token = None if address.private else secrets.token_urlsafe(24)
        url = address.url if token is None else f"{address.url}?token={token}"
        torch.set_num_threads(1)  # of each worker
        line = Line()
        door = Door(create_app(shelf, saved, line), address, token)

        def started() -> None:
            say(f"The explorer is at {url}  (Ctrl-C ends it)")
            if open_page:
                # a browser within the terminal keeps whoever opens it
                Thread(target=webbrowser.open, args=(url,), daemon=True).start()

        _Server(_config(door), started).run([listener])
        line.close()


def _config(door: Door) -> uvicorn.Config:
    return uvicorn.Config(
        door,
        http=Impatient,
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=int(SECONDS) + 5,
    )


class _Server(uvicorn.Server):
    """Uvicorn, but told to stop it ends as something that is done, not as something killed."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._tell = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._tell()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        ends = (signal.SIGINT, signal.SIGTERM)
        before = {each: signal.signal(each, self.handle_exit) for each in ends}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


@contextmanager
def _bound(host: str, port: int) -> Iterator[socket.socket]:
    """Take the port first: whoever trains a model for it should know that it is free."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as problem:
        raise RegardError(f"cannot listen on {host!r}: {problem.strerror}") from problem
    except UnicodeError as problem:  # an empty part between dots, or one of more than 63 letters
        raise RegardError(f"cannot listen on {host!r}: no host can have that name") from problem
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(place)
            listener.listen()  # until then, others may bind to it, too
        except OSError as problem:
            raise RegardError(
                f"cannot listen on port {port} of {host}: {problem.strerror}; "
                f"--port {port + 1 if 0 < port < 65535 else 0} may be free"
            ) from problem
        yield listener
