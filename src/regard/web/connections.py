"""Accepting connections within the limit of open files.

Each connection is an open file, of which a process may have a limited number (`ulimit -n`).
Uvicorn accepts all it can and, when files run out, asyncio logs a traceback for every attempt.
Here, at the limit, the connection that has been idle longest is closed for the new one, and when
files run out all the same, accepting pauses.
"""

import asyncio
import errno
import logging
import socket
import time
from collections.abc import Callable, Collection

from regard.web.timeouts import TimeoutH11Protocol

try:
    import resource
except ImportError:  # Windows, which has no such limit
    resource = None  # type: ignore[assignment]

MAX_CONNECTIONS = 512
MIN_CONNECTIONS = 8
ACCEPT_RETRY_SECONDS = 0.1  # after files have run out, or while every connection is busy
LOG_INTERVAL_SECONDS = 60.0
_OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

logger = logging.getLogger(__name__)


def connection_limit() -> int:
    """Return how many connections to keep open: half of the files that the process may open.

    The other half is for models, logs and sockets that are being closed.
    """
    if resource is None:
        return MAX_CONNECTIONS
    max_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if max_files == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return max(MIN_CONNECTIONS, min(max_files // 2, MAX_CONNECTIONS))


class ConnectionAcceptor:
    """Accepts connections; at the limit, closes the one that has been idle longest.

    Args:
        create_protocol: makes the protocol of a new connection.
        connections: protocols of the open connections, kept up to date by themselves.
        max_connections: how many connections may be open. While none of them is idle, new ones
            wait in the listening socket's backlog.
    """

    def __init__(
        self,
        create_protocol: Callable[[], TimeoutH11Protocol],
        connections: Collection[TimeoutH11Protocol],
        max_connections: int,
    ) -> None:
        self._create_protocol = create_protocol
        self._connections = connections
        self._max_connections = max_connections
        self._last_log_time = -LOG_INTERVAL_SECONDS

    async def accept_forever(self, listener: socket.socket) -> None:
        """Accept connections of a listening socket until cancelled."""
        listener.setblocking(False)
        while True:
            try:
                connection = await _accept(listener)
            except OSError as error:
                await self._pause_after(error)
            else:
                await self._connect(connection)

    async def accept_waiting(self, listener: socket.socket) -> None:
        """Accept the connections that wait in the backlog of a socket, for the last time."""
        listener.setblocking(False)
        while len(self._connections) < self._max_connections:
            try:
                connection, _ = listener.accept()
            except OSError:  # none waits, or files have run out
                return
            await self._connect(connection)

    async def _connect(self, connection: socket.socket) -> None:
        """Create the protocol of a connection when there is room for it."""
        loop = asyncio.get_running_loop()
        try:
            await self._make_room()
            await loop.connect_accepted_socket(self._create_protocol, connection)
        except OSError:  # the client has gone
            connection.close()
        except asyncio.CancelledError:
            connection.close()
            raise

    async def _make_room(self) -> None:
        """Wait until there are fewer connections than the maximum, closing idle ones."""
        while len(self._connections) >= self._max_connections:
            has_closed = self._close_oldest_idle()
            await asyncio.sleep(0 if has_closed else ACCEPT_RETRY_SECONDS)

    async def _pause_after(self, error: OSError) -> None:
        """Wait for files to be closed; an error of one connection needs no pause."""
        if error.errno not in _OUT_OF_RESOURCES:
            await asyncio.sleep(0)
            return
        self._close_oldest_idle()
        now = time.monotonic()
        if now - self._last_log_time >= LOG_INTERVAL_SECONDS:
            self._last_log_time = now
            logger.warning(
                "cannot accept connections (%s); trying again. A higher `ulimit -n` allows more.",
                error.strerror,
            )
        await asyncio.sleep(ACCEPT_RETRY_SECONDS)

    def _close_oldest_idle(self) -> bool:
        """Close the connection that has been idle longest, and return whether there was one."""
        idle = [connection for connection in self._connections if connection.is_idle]
        if not idle:
            return False
        min(idle, key=lambda connection: connection.idle_since).transport.close()
        return True


async def _accept(listener: socket.socket) -> socket.socket:
    """Accept a connection when there is one.

    `loop.sock_accept` loses the connection that arrives while it is being cancelled.
    """
    loop = asyncio.get_running_loop()
    while True:
        readable: asyncio.Future[None] = loop.create_future()
        try:
            loop.add_reader(listener, _complete, readable)
        except NotImplementedError:  # the event loop of Windows
            connection, _ = await loop.sock_accept(listener)
            return connection
        try:
            await readable
        finally:
            loop.remove_reader(listener)
        try:
            connection, _ = listener.accept()
        except BlockingIOError:  # another process was faster
            continue
        connection.setblocking(False)
        return connection


def _complete(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
