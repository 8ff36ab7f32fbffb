"""ASGI middleware: security headers, concurrency limit, host and origin check, token, body limit.

`secure_app` wraps the app in all five, outermost first. A middleware that rejects a request
answers it itself, with a JSON error and `Connection: close`, because the rest of the request is
not read. Two of Starlette's own middlewares come near but do not do these jobs:
`TrustedHostMiddleware` ignores ports and repeated Host headers, and `AuthenticationMiddleware`
knows no login by link.
"""

import secrets
import socket
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import parse_qsl, urlencode

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.explorer.error_handlers import error_response
from regard.explorer.schemas import LIMITS, Limits

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")
WILDCARD_HOSTS = ("0.0.0.0", "::", "[::]")
MAX_CONCURRENT_REQUESTS = 256
MAX_BUFFERED_BYTES = 1 << 28  # of all request bodies that are being read
MAX_DISCARDED_BYTES = 1 << 26  # of a body that is too large, read before the 413 is sent
BODY_TIMEOUT_SECONDS = 10.0
UPLOAD_PATHS = ("/api/traces/open", "/api/traces/contents")

SECURITY_HEADERS = {
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
class ServerAddress:
    """Host and port on which the server listens.

    Example:
        >>> address = ServerAddress("127.0.0.1", 8765)
        >>> address.url
        'http://127.0.0.1:8765/'
        >>> address.allows_host("localhost:8765"), address.allows_host("evil.example:8765")
        (True, False)
    """

    host: str = "127.0.0.1"
    port: int = 8765

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return _bracketed(self.host) in LOOPBACK_HOSTS

    @property
    def url(self) -> str:
        """URL of the page, for the browser."""
        host = socket.gethostname() if self.host in WILDCARD_HOSTS else self.host
        return f"http://{_bracketed(host)}:{self.port}/"

    def allows_host(self, host_header: str) -> bool:
        """Return whether a Host header names this server.

        Any other name may be one that an attacker's DNS server resolves to this address (DNS
        rebinding). IP addresses cannot be rebound, so a wildcard host accepts every one of them.
        """
        name, _, port = host_header.lower().rpartition(":")
        if not port.isdigit():
            name, port = host_header.lower(), "80"
        if port != str(self.port):
            return False
        if self.host in WILDCARD_HOSTS and (
            _is_ip_address(name) or name == socket.gethostname().lower()
        ):
            return True
        return name in LOOPBACK_HOSTS or name == _bracketed(self.host).lower()


def secure_app(
    app: ASGIApp,
    address: ServerAddress,
    token: str | None = None,
    limits: Limits = LIMITS,
    body_timeout_seconds: float = BODY_TIMEOUT_SECONDS,
) -> ASGIApp:
    """Wrap an app in all middlewares of this module.

    Args:
        app: The ASGI app to protect.
        address: Where the server listens; requests for other hosts or from other origins get 403.
        token: Required of every request as a cookie or bearer token; None switches this off.
        limits: Largest request bodies.
        body_timeout_seconds: Time within which a request body must have arrived.
    """
    app = BodyLimitMiddleware(app, limits, body_timeout_seconds)
    if token is not None:
        app = TokenAuthMiddleware(app, token, cookie=f"regard-{address.port}")
    app = HostOriginMiddleware(app, address)
    app = ConcurrencyLimitMiddleware(app)
    return SecurityHeadersMiddleware(app)


class _RequestMiddleware:
    """Base of the middlewares: passes HTTP requests to `handle`, answers its `HTTPException`s."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            await self.handle(scope, receive, send)
        except HTTPException as error:
            headers = {**(error.headers or {}), "Connection": "close"}
            response = error_response(error.status_code, str(error.detail), headers)
            await response(scope, receive, send)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one HTTP request."""
        raise NotImplementedError


class SecurityHeadersMiddleware(_RequestMiddleware):
    """Adds the content security policy, its companions and `Cache-Control` to every response."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, adding headers to its response."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(SECURITY_HEADERS)
                # API responses are outdated at once; static files are revalidated by their ETag
                is_dynamic = scope["path"].startswith("/api/") or message["status"] != 200
                headers["Cache-Control"] = "no-store" if is_dynamic else "no-cache"
            await send(message)

        await self.app(scope, receive, send_with_headers)


class ConcurrencyLimitMiddleware(_RequestMiddleware):
    """Answers 503 with Retry-After while too many requests are in progress."""

    def __init__(self, app: ASGIApp, max_requests: int = MAX_CONCURRENT_REQUESTS) -> None:
        super().__init__(app)
        self._max_requests = max_requests
        self._active_requests = 0

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on if there are fewer than the maximum."""
        if self._active_requests >= self._max_requests:
            message = "too many concurrent requests; try again in a moment"
            raise HTTPException(503, message, {"Retry-After": "1"})
        self._active_requests += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self._active_requests -= 1


class HostOriginMiddleware(_RequestMiddleware):
    """Host check (against DNS rebinding) and origin check (against CSRF)."""

    def __init__(self, app: ASGIApp, address: ServerAddress) -> None:
        super().__init__(app)
        self._address = address

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on if it is addressed to this server, and sent by none or our page."""
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not self._address.allows_host(hosts[0]):
            name = ", ".join(hosts)[:255]
            raise HTTPException(
                403, f"Host header {name!r} is not allowed; open {self._address.url}"
            )
        for origin in origins:
            if origin.lower() != f"http://{hosts[0]}".lower():
                raise HTTPException(403, f"cross-origin request: Origin {origin[:255]!r} denied")
        await self.app(scope, receive, send)


class TokenAuthMiddleware(_RequestMiddleware):
    """Token authentication: a cookie or `Authorization: Bearer` must carry the token.

    The link that the server prints, `/?token=…`, logs in: it sets the cookie and redirects to the
    page without the token, so that it stays out of the browser's history.

    Args:
        app: The ASGI app to protect.
        token: The secret.
        cookie: The cookie's name. Cookies are shared between the ports of a host, so it should
            contain the port.
    """

    def __init__(self, app: ASGIApp, token: str, cookie: str) -> None:
        super().__init__(app)
        self._token = token
        self._cookie = cookie

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on if it carries the token."""
        login = self._login_response(scope)
        if login is not None:
            await login(scope, receive, send)
            return
        self._check_token(Headers(scope=scope))
        await self.app(scope, receive, send)

    def _login_response(self, scope: Scope) -> Response | None:
        """Return a redirect that sets the cookie, if this is the page's URL with the token."""
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        token = query.pop("token", "")
        if scope["path"] != "/" or not self._is_valid(token):
            return None
        response = RedirectResponse(f"/?{urlencode(query)}" if query else "/", 303)
        response.set_cookie(self._cookie, token, httponly=True, samesite="strict")
        return response

    def _check_token(self, headers: Headers) -> None:
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        cookie = cookie_parser(headers.get("cookie", "")).get(self._cookie, "")
        if self._is_valid(cookie) or (scheme.lower() == "bearer" and self._is_valid(bearer)):
            return
        raise HTTPException(401, "a token is required: open the URL that the server printed")

    def _is_valid(self, token: str) -> bool:
        return secrets.compare_digest(token.encode("utf-8", "replace"), self._token.encode())


class BodyLimitMiddleware(_RequestMiddleware):
    """Size limit and timeout of request bodies.

    A body is read completely before the app sees the request, so that slow clients occupy no
    worker. Bodies that are too large get 413, slow ones 408; 503 if all bodies that are being
    read exceed `max_buffered_bytes` together.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits = LIMITS,
        timeout_seconds: float = BODY_TIMEOUT_SECONDS,
        max_discarded_bytes: int = MAX_DISCARDED_BYTES,
        max_buffered_bytes: int = MAX_BUFFERED_BYTES,
    ) -> None:
        super().__init__(app)
        self._limits = limits
        self._timeout_seconds = timeout_seconds
        self._max_discarded_bytes = max_discarded_bytes
        self._max_buffered_bytes = max_buffered_bytes
        self._buffered_bytes = 0

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body and pass the request on; do nothing if the client disconnects."""
        is_upload = scope["path"] in UPLOAD_PATHS
        max_bytes = self._limits.max_trace_bytes if is_upload else self._limits.max_body_bytes
        await self._check_content_length(Headers(scope=scope), receive, max_bytes)
        try:
            with anyio.fail_after(self._timeout_seconds):
                body = await self._read_body(receive, max_bytes)
        except TimeoutError as error:
            message = f"the request body must arrive within {self._timeout_seconds:g} seconds"
            raise HTTPException(408, message) from error
        if body is not None:
            await self.app(scope, _replay(body, receive), send)

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


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that delivers a body which was already read, then goes on."""
    is_delivered = False

    async def receive_replayed() -> Message:
        nonlocal is_delivered
        if is_delivered:
            return await receive()
        is_delivered = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_replayed


def _bracketed(host: str) -> str:
    """Return an IPv6 address in brackets, as URLs have it; other hosts unchanged."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _is_ip_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
