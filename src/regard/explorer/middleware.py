"""The door: who may come in, how large and how slow a request may be, and what goes out with it."""

import asyncio
import secrets
import socket
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import parse_qsl, urlencode

from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.explorer.error_handlers import answer
from regard.explorer.errors import Refused
from regard.explorer.limits import LIMITS, Limits

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
ANYWHERE = ("0.0.0.0", "::", "[::]")
INSIDE = 256  # requests at a time
HELD = 1 << 28  # bytes of all requests that are being read
FILES = ("/api/traces/open", "/api/traces/contents")  # where files are sent to
SECONDS = 10.0  # in which a request must have come in whole
REST = 1 << 26  # bytes of a request that is too large to read and drop; most listen only then

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server listens, and by which names it may be called."""

    host: str = "127.0.0.1"
    port: int = 8765

    @property
    def private(self) -> bool:
        """Whether only this machine can reach it."""
        return f"[{self.host}]" in LOOPBACK or self.host in LOOPBACK

    @property
    def url(self) -> str:
        """What to type into a browser."""
        host = socket.gethostname() if self.host in ANYWHERE else self.host
        return f"http://{_bracketed(host)}:{self.port}/"

    def is_called(self, host: str) -> bool:
        """Tell whether a Host header names this server, and not a name that was bent towards it."""
        name, _, port = host.lower().rpartition(":")
        if not port.isdigit():
            name, port = host.lower(), "80"
        if port != str(self.port):
            return False
        if self.host in ANYWHERE and (_is_number(name) or name == socket.gethostname().lower()):
            return True
        return name in LOOPBACK or name == _bracketed(self.host).lower()


class Door:
    """Stands before an app: lets in who may come in, once the whole request is there."""

    def __init__(
        self,
        app: ASGIApp,
        address: Address,
        token: str | None = None,
        limits: Limits = LIMITS,
        seconds: float = SECONDS,
    ) -> None:
        self._app = app
        self._address = address
        self._token = token
        self._limits = limits
        self._seconds = seconds
        self._inside = 0
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or say why not."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        send = _with_headers(scope, send)
        try:
            self._inside += 1
            await self._pass(scope, receive, send)
        except Refused as problem:
            refusal = answer(problem.status, problem.sentence, problem.headers)
            refusal.headers["Connection"] = "close"  # what is left of the request is not read
            await refusal(scope, receive, send)
        finally:
            self._inside -= 1

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if self._inside > INSIDE:
            raise Refused(503, "too many requests at a time; come again in a moment", retry_after=1)
        self._check_names(headers)
        if (welcome := self._welcome(scope)) is not None:
            await welcome(scope, receive, send)
            return
        self._check_token(headers)
        body = await self._read(scope, headers, receive)
        if body is not None:
            await self._app(scope, _again(body, receive), send)

    def _check_names(self, headers: Headers) -> None:
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not self._address.is_called(hosts[0]):
            raise Refused(403, f"this server is at {self._address.url}, and has no other name")
        if any(origin.lower() != f"http://{hosts[0]}".lower() for origin in origins):
            raise Refused(403, "this request comes from another site's page")

    def _welcome(self, scope: Scope) -> Response | None:
        """Give a cookie to who opens the page with the token, and show it without."""
        asked = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        given = asked.pop("token", "")
        if self._token is None or scope["path"] != "/" or not self._is_token(given):
            return None
        response = RedirectResponse(f"/?{urlencode(asked)}" if asked else "/", 303)
        response.set_cookie(self._cookie, given, httponly=True, samesite="strict")
        return response

    def _check_token(self, headers: Headers) -> None:
        if self._token is None:
            return
        kind, _, bearer = headers.get("authorization", "").partition(" ")
        cookie = cookie_parser(headers.get("cookie", "")).get(self._cookie, "")
        if not (self._is_token(cookie) or (kind.lower() == "bearer" and self._is_token(bearer))):
            raise Refused(401, "a token is needed: open the address that the server printed")

    @property
    def _cookie(self) -> str:
        return f"regard-{self._address.port}"  # browsers do not part cookies by port

    def _is_token(self, given: str) -> bool:
        wanted = self._token or ""
        return secrets.compare_digest(given.encode("utf-8", "replace"), wanted.encode())

    async def _read(self, scope: Scope, headers: Headers, receive: Receive) -> bytes | None:
        """Read a request whole, so that nobody works on one that is still under way."""
        most = (
            self._limits.max_trace_bytes if scope["path"] in FILES else self._limits.max_body_bytes
        )
        announced = headers.get("content-length", "0")
        if announced.isdigit() and int(announced[:20]) > most:
            if "expect" not in headers:  # who waits to be asked for the body has sent none
                await self._drop(receive)
            raise _too_large(most)
        try:
            async with asyncio.timeout(self._seconds):
                return await self._collect(receive, most)
        except TimeoutError as problem:
            raise Refused(
                408, f"the request must be whole within {self._seconds:g} seconds"
            ) from problem

    async def _collect(self, receive: Receive, most: int) -> bytes | None:
        body = bytearray()
        try:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                part = message.get("body", b"")
                self._held += len(part)
                body += part
                if len(body) > most:
                    if message.get("more_body"):
                        await self._drop(receive)
                    raise _too_large(most)
                if self._held > HELD:
                    raise Refused(503, "too many large requests at a time", retry_after=5)
                if not message.get("more_body"):
                    return bytes(body)
        finally:
            self._held -= len(body)

    async def _drop(self, receive: Receive) -> None:
        """Read what is left of a request, within bounds: who still sends does not hear why not."""
        left = REST
        with suppress(TimeoutError):
            async with asyncio.timeout(self._seconds):
                while left > 0:
                    message = await receive()
                    if not message.get("more_body"):  # all has come, or the client has left
                        return
                    left -= len(message.get("body", b""))


def _too_large(most: int) -> Refused:
    return Refused(413, f"a request must have at most {most} bytes here, but this one has more")


def _with_headers(scope: Scope, send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update(HEADERS)
            # what an API says is never true for long; pages are asked for anew, but not sent again
            api = scope["path"].startswith("/api/") or message["status"] != 200
            headers["Cache-Control"] = "no-store" if api else "no-cache"
        await send(message)

    return send_with_headers


def _again(body: bytes, receive: Receive) -> Receive:
    """Hand a body on as if it just came; after it, whatever comes."""
    told = False

    async def receive_again() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _is_number(name: str) -> bool:
    """Tell whether a name is an address in numbers: no name server can bend that."""
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
