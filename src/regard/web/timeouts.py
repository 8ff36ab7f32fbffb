"""Timeouts of connections, so that slow clients hold no sockets (slowloris attacks).

Uvicorn has a timeout between requests (`timeout_keep_alive`), but none for a client that sends its
headers too slowly or does not read its response. `BodyLimitMiddleware` limits the time of bodies.
"""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_TIMEOUT_SECONDS = 10.0  # within which the headers of a request must have arrived
WRITE_TIMEOUT_SECONDS = 30.0  # within which a client must read some of its response:
MIN_WRITE_BYTES = 1 << 14  # this much, or what is left


class TimeoutH11Protocol(H11Protocol):
    """Uvicorn's HTTP/1.1 protocol with a timeout for request headers and one for writing.

    The header timeout starts with the connection; for further requests on the same connection,
    with the first byte. A client that does not read its response is disconnected, and its request
    ends. A connection without a request in progress is idle, also while headers arrive.
    """

    header_timeout_seconds = HEADER_TIMEOUT_SECONDS
    write_timeout_seconds = WRITE_TIMEOUT_SECONDS
    idle_since = 0.0  # in seconds of the loop's clock
    _header_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the header timer."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # pause_writing as soon as anything is buffered
        self.idle_since = self.loop.time()
        self._start_header_timer()

    @property
    def is_idle(self) -> bool:
        """Whether the connection can be closed without breaking off a response."""
        has_request = self.cycle is not None and not self.cycle.response_complete
        is_sending = self.transport.get_write_buffer_size() > 0
        return not (has_request or is_sending or self.transport.is_closing())

    def on_response_complete(self) -> None:
        """Note the time, and wait for the next request."""
        self.idle_since = self.loop.time()
        super().on_response_complete()

    def data_received(self, data: bytes) -> None:
        """Parse some bytes; the timer runs until they complete the headers."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._start_header_timer()
        else:
            self._stop_header_timer()

    def send_400_response(self, msg: str) -> None:
        """Answer malformed data and disconnect; if a response has begun, disconnect only.

        Malformed data may follow the headers of a request that is in progress, as in a chunked
        body. Uvicorn would then send a second response, and log a traceback for one of the two.
        """
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:  # also for HEAD, whose response has no body
            self.transport.close()
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        self._stop_header_timer()
        self._stop_write_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Start the write timer: the client has not read all that was written."""
        super().pause_writing()
        self._start_write_timer()

    def resume_writing(self) -> None:
        """Stop the write timer: the client has read everything."""
        self._stop_write_timer()
        super().resume_writing()

    def _start_header_timer(self) -> None:
        if self._header_timer is None:
            self._header_timer = self.loop.call_later(
                self.header_timeout_seconds, self.transport.close
            )

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _start_write_timer(self) -> None:
        buffered = self.transport.get_write_buffer_size()
        self._write_timer = self.loop.call_later(
            self.write_timeout_seconds, self._check_write_progress, buffered
        )

    def _check_write_progress(self, buffered_before: int) -> None:
        """Wait further for a client that is slow but reads; disconnect one that does not."""
        if buffered_before - self.transport.get_write_buffer_size() >= MIN_WRITE_BYTES:
            self._start_write_timer()
        else:
            self.transport.abort()

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
