"""How long the server waits for heads to come and answers to go: who is slow holds no socket."""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS = 10.0  # in which a head must have come in whole; the door waits for the rest of a request
TAKING = 30.0  # seconds in which a client must take some of its answer,
SOME = 1 << 14  # so many bytes, or the rest


class Impatient(H11Protocol):
    """Uvicorn's HTTP, but a connection without a whole head is closed when its time is up.

    Between two requests uvicorn's own limit holds, until the first byte of the second. A client
    that does not read its answers is let go, too, and the request it holds ends.
    """

    seconds, taking = SECONDS, TAKING
    _deadline: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait, from the first moment on."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # tell of every byte that waits to be taken
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take some bytes; as long as they make no whole head, the time goes on."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._wait()
        else:
            self._rest()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._rest()
        self._taken()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Begin to wait for the client to take what was written."""
        super().pause_writing()
        self._offer()

    def resume_writing(self) -> None:
        """Wait no more: all was taken."""
        self._taken()
        super().resume_writing()

    def _wait(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.seconds, self.transport.close)

    def _rest(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _offer(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._reading = self.loop.call_later(self.taking, self._look_what_is_taken, left)

    def _look_what_is_taken(self, before: int) -> None:
        """Go on with a client that is slow but reads, and let go of one that does not."""
        if before - self.transport.get_write_buffer_size() >= SOME:
            self._offer()
        else:
            self.transport.abort()

    def _taken(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
