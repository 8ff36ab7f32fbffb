"""ASGI middleware: security headers, host and origin check, authentication, concurrency limit.

A middleware that rejects a request answers it itself, with a JSON error and `Connection: close`.
Two of Starlette's own middlewares are not sufficient: `TrustedHostMiddleware` ignores ports and
repeated Host headers, and `AuthenticationMiddleware` does not support login links.
"""

import secrets
import socket
from dataclasses import dataclass
from ipaddress import ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.errors import RegardError
from regard.web.error_handlers import error_response

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")
WILDCARD_HOSTS = ("0.0.0.0", "::", "[::]")
MAX_CONCURRENT_REQUESTS = 256
"""Requests in progress, beyond which `ConcurrencyLimitMiddleware` answers 503."""

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
"""The headers that `SecurityHeadersMiddleware` adds."""

UNAUTHENTICATED = {"WWW-Authenticate": "Bearer"}
"""The headers of a response with status 401."""


class RequestMiddleware:
    """Passes HTTP requests to `handle` and answers each `HTTPException` it raises.

    Such an answer closes the connection, because the rest of the request is not read.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request; pass on anything that is not HTTP."""
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


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Host and port on which the server listens.

    Attributes:
        host: address or name.
        port: the port.
        allowed_hosts: further names that requests may be for, at any port: those of a proxy.

    Example:
        >>> address = ServerAddress("127.0.0.1", 8765)
        >>> address.url
        'http://127.0.0.1:8765/'
        >>> address.allows_host("localhost:8765"), address.allows_host("evil.example:8765")
        (True, False)
    """

    host: str = "127.0.0.1"
    port: int = 8765
    allowed_hosts: tuple[str, ...] = ()

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
        name, port = _split_host(host_header)
        if name in self.allowed_hosts:
            return True
        if port != str(self.port):
            return False
        if self.host in WILDCARD_HOSTS and (
            _is_ip_address(name) or name == socket.gethostname().lower()
        ):
            return True
        return name in LOOPBACK_HOSTS or name == _bracketed(self.host).lower()

    def allows_origin(self, origin: str, host_header: str) -> bool:
        """Return whether a request with an allowed Host header may come from a page of an origin.

        The origin must be that of the Host header. The server speaks HTTP; only under
        `allowed_hosts`, where a proxy may end TLS, the page may have been loaded by HTTPS.
        """
        host = host_header.lower()
        origins = {f"http://{host}"}
        if _split_host(host)[0] in self.allowed_hosts:
            origins.add(f"https://{host}")
        return origin.lower() in origins


def check_needs_token(host: str, needs_token: bool) -> None:
    """Raise RegardError if other machines could reach a server that needs no token."""
    if not needs_token and not ServerAddress(host).is_loopback:
        raise RegardError(
            f"host={host} needs a token, since other machines can reach it; "
            "only localhost can do without"
        )


class SecurityHeadersMiddleware(RequestMiddleware):
    """Adds the content security policy, its companions and `Cache-Control` to every response."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, adding headers to its response."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)  # the login page has its own policy
                # API responses are outdated at once; static files are revalidated by their ETag
                is_dynamic = scope["path"].startswith("/api/") or message["status"] not in (
                    200,
                    304,
                )
                headers["Cache-Control"] = "no-store" if is_dynamic else "no-cache"
            await send(message)

        await self.app(scope, receive, send_with_headers)


class ConcurrencyLimitMiddleware(RequestMiddleware):
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


class HostOriginMiddleware(RequestMiddleware):
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
            if not self._address.allows_origin(origin, hosts[0]):
                raise HTTPException(403, f"cross-origin request: Origin {origin[:255]!r} denied")
        await self.app(scope, receive, send)


def _split_host(host_header: str) -> tuple[str, str]:
    """Return the name in a Host header, in lower case, and the port; 80 if it has none."""
    name, _, port = host_header.lower().rpartition(":")
    return (name, port) if port.isdigit() else (host_header.lower(), "80")


def _bracketed(host: str) -> str:
    """Return an IPv6 address in brackets, as URLs have it; other hosts unchanged."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _is_ip_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


class TokenAuthMiddleware(RequestMiddleware):
    """Lets requests pass that carry the token; subclasses may accept more.

    Args:
        app: the ASGI app to protect.
        token: the secret.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        super().__init__(app)
        self.token = token

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on if it is authenticated."""
        if self.is_authenticated(Headers(scope=scope)):
            await self.app(scope, receive, send)
        else:
            await self.refuse(scope, receive, send)

    def is_authenticated(self, headers: Headers) -> bool:
        """Return whether the headers have the token."""
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and is_equal_secret(bearer, self.token)

    async def refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that is not authenticated."""
        message = "a valid token is required: send it as `Authorization: Bearer TOKEN`"
        raise HTTPException(401, message, UNAUTHENTICATED)


def is_equal_secret(given: str, secret: str) -> bool:
    """Compare in a time that does not depend on where the two differ."""
    return secrets.compare_digest(given.encode("utf-8", "replace"), secret.encode())
