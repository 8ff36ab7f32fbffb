"""The HTTP server: uvicorn with limits, timeouts and a graceful shutdown."""

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from regard.errors import RegardError
from regard.web.connections import ConnectionAcceptor, connection_limit
from regard.web.timeouts import TimeoutH11Protocol

BACKLOG = 1024  # connections that wait to be accepted
KEEP_ALIVE_SECONDS = 5  # between two requests on a connection
SHUTDOWN_SECONDS = 35  # within which requests in progress must finish
LAST_REQUESTS_SECONDS = 0.1  # within which those of the last connections must arrive


def uvicorn_config(
    app: ASGIApp, *, shutdown_seconds: int = SHUTDOWN_SECONDS, has_lifespan: bool = False
) -> uvicorn.Config:
    """Return uvicorn's configuration: HTTP/1.1 only, quiet, with limits and timeouts.

    Args:
        app: the ASGI app.
        shutdown_seconds: time that requests in progress get to finish at a shutdown.
        has_lifespan: whether the app starts and stops background tasks.
    """
    return uvicorn.Config(
        app,
        http=TimeoutH11Protocol,
        ws="none",
        lifespan="on" if has_lifespan else "off",
        log_level="error",  # uvicorn warns of every malformed request
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=shutdown_seconds,
    )


class HTTPServer(uvicorn.Server):
    """Uvicorn's server with a limit of connections; SIGINT and SIGTERM end it with exit code 0.

    Args:
        config: the configuration, from `uvicorn_config`.
        on_started: called when the server accepts connections.
        max_connections: connections that may be open; `connection_limit()` if None.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        on_started: Callable[[], None] = lambda: None,
        max_connections: int | None = None,
    ) -> None:
        super().__init__(config)
        self._on_started = on_started
        self._max_connections = max_connections or connection_limit()
        self._acceptor: ConnectionAcceptor | None = None
        self._accept_tasks: list[asyncio.Task[None]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections of the sockets; uvicorn itself gets none of them."""
        await super().startup(sockets=[])
        connections: Any = self.server_state.connections
        acceptor = ConnectionAcceptor(self._create_protocol, connections, self._max_connections)
        self._acceptor = acceptor
        self._accept_tasks = [
            asyncio.create_task(acceptor.accept_forever(listener)) for listener in sockets or []
        ]
        self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting connections, and finish the requests in progress.

        Clients whose connections wait in the backlog may have sent their requests already.
        """
        for task in self._accept_tasks:
            task.cancel()
        await asyncio.gather(*self._accept_tasks, return_exceptions=True)
        if self._acceptor is not None:
            for listener in sockets or []:
                await self._acceptor.accept_waiting(listener)
                listener.close()
            await asyncio.sleep(LAST_REQUESTS_SECONDS)
        await super().shutdown(sockets)

    def _create_protocol(self) -> TimeoutH11Protocol:
        protocol: Any = self.config.http_protocol_class
        created: TimeoutH11Protocol = protocol(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return created

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals as uvicorn does, but do not raise them again after the shutdown."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
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
    """Yield a listening socket; bind it first, so that a taken port is reported at once."""
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
            listener.listen(BACKLOG)  # before that, other sockets may bind to the port too
        except OSError as error:
            raise RegardError(
                f"cannot listen on port {port} of {host}: {error.strerror}; "
                f"port={port + 1 if 0 < port < 65535 else 0} may be free"
            ) from error
        yield listener
