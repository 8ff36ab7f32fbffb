"""Size limit and timeout of request bodies."""

from collections.abc import Mapping

import anyio
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.web.middleware import RequestMiddleware

MAX_BODY_BYTES = 1 << 18
MAX_BUFFERED_BYTES = 1 << 28  # of all request bodies that are being read
MAX_DISCARDED_BYTES = 1 << 26  # of a body that is too large, read before the 413 is sent
BODY_TIMEOUT_SECONDS = 10.0
"""Time in which the whole body of a request must arrive, by default."""


class BodyLimitMiddleware(RequestMiddleware):
    """Size limit and timeout of request bodies.

    A body is read completely before the app sees the request, so that slow clients occupy no
    worker. Bodies that are too large get 413, slow ones 408; 503 if all bodies that are being
    read exceed `max_buffered_bytes` together.

    Args:
        app: the ASGI app, which gets complete requests.
        max_body_bytes: largest body.
        max_upload_bytes: largest body of some paths, instead.
        timeout_seconds: time within which a body must have arrived.
        max_discarded_bytes: how much of a body that is too large is read.
        max_buffered_bytes: largest sum of the bodies that are being read.
    """

    def __init__(
        self,
        app: ASGIApp,
        max_body_bytes: int = MAX_BODY_BYTES,
        max_upload_bytes: Mapping[str, int] | None = None,
        timeout_seconds: float = BODY_TIMEOUT_SECONDS,
        max_discarded_bytes: int = MAX_DISCARDED_BYTES,
        max_buffered_bytes: int = MAX_BUFFERED_BYTES,
    ) -> None:
        super().__init__(app)
        self._max_body_bytes = max_body_bytes
        self._max_upload_bytes = max_upload_bytes or {}
        self._timeout_seconds = timeout_seconds
        self._max_discarded_bytes = max_discarded_bytes
        self._max_buffered_bytes = max_buffered_bytes
        self._buffered_bytes = 0

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body and pass the request on; do nothing if the client disconnects."""
        max_bytes = self._max_upload_bytes.get(scope["path"], self._max_body_bytes)
        await self._check_content_length(Headers(scope=scope), receive, max_bytes)
        try:
            with anyio.fail_after(self._timeout_seconds):
                body = await self._read_body(receive, max_bytes)
        except TimeoutError as error:
            message = f"the request body must arrive within {self._timeout_seconds:g} seconds"
            raise HTTPException(408, message) from error
        if body is not None:
            await self.app(scope, replay_body(body, receive), send)

    async def _check_content_length(
        self, headers: Headers, receive: Receive, max_bytes: int
    ) -> None:
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length[:20]) > max_bytes:
            if "expect" not in headers:  # with Expect: 100-continue, no body has been sent
                await self._discard_body(receive)
            raise _body_too_large(max_bytes)

    async def _read_body(self, receive: Receive, max_bytes: int) -> bytes | None:
        """Return the body, or None if the client disconnects."""
        body = bytearray()
        try:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                chunk = message.get("body", b"")
                self._buffered_bytes += len(chunk)
                body += chunk
                if len(body) > max_bytes:
                    if message.get("more_body"):
                        await self._discard_body(receive)
                    raise _body_too_large(max_bytes)
                if self._buffered_bytes > self._max_buffered_bytes:
                    raise HTTPException(503, "too many large requests", {"Retry-After": "5"})
                if not message.get("more_body"):
                    return bytes(body)
        finally:
            self._buffered_bytes -= len(body)

    async def _discard_body(self, receive: Receive) -> None:
        """Read the rest of a body, within bounds: most clients read no response before that."""
        remaining = self._max_discarded_bytes
        with anyio.move_on_after(self._timeout_seconds):
            while remaining > 0:
                message = await receive()
                if not message.get("more_body"):  # complete, or disconnected
                    return
                remaining -= len(message.get("body", b""))


def _body_too_large(max_bytes: int) -> HTTPException:
    return HTTPException(413, f"the request body must have at most {max_bytes} bytes")


def replay_body(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that first delivers a body which was already read."""
    is_delivered = False

    async def receive_replayed() -> Message:
        nonlocal is_delivered
        if is_delivered:
            return await receive()
        is_delivered = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_replayed
