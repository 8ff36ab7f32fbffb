"""Login of browsers, which carry a cookie; programs send `Authorization: Bearer`.

A browser gets the cookie in one of three ways, after which its URL contains no secret:

- `/?token=…`, the link that the server prints;
- `/?login=…`, a one-time link, which `--open` passes to the browser: command lines are visible to
  other users, and URLs stay in the history, so it is valid once and for a minute;
- the login page, which is shown to browsers without a cookie and posts the token to `/login`.

The cookie contains neither of them but a random value of its own.
"""

import secrets
import time
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request, cookie_parser
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from regard.web import (
    UNAUTHENTICATED,
    BodyLimitMiddleware,
    TokenAuthMiddleware,
    is_equal_secret,
)

SECRET_BYTES = 24
LOGIN_LINK_SECONDS = 60.0
MAX_LOGIN_BYTES = 4096

LoginProblem = Literal["none", "wrong-token", "used-link"]
"""Why a browser sees the login page."""


class LoginCodes:
    """Codes of login links: each is valid once, for a short time.

    Args:
        lifetime_seconds: how long a code is valid.
        clock: returns the time in seconds.

    Example:
        >>> codes = LoginCodes()
        >>> code = codes.create()
        >>> codes.redeem(code), codes.redeem(code)
        (True, False)
    """

    def __init__(
        self,
        lifetime_seconds: float = LOGIN_LINK_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lifetime_seconds = lifetime_seconds
        self._clock = clock
        self._expiry_times: dict[str, float] = {}

    def create(self) -> str:
        """Return a new code."""
        code = secrets.token_urlsafe(SECRET_BYTES)
        self._expiry_times[code] = self._clock() + self._lifetime_seconds
        return code

    def redeem(self, code: str) -> bool:
        """Return whether a code is valid; it is not from then on."""
        for known, expiry_time in list(self._expiry_times.items()):
            if is_equal_secret(code, known):
                del self._expiry_times[known]
                return self._clock() < expiry_time
        return False


class LoginMiddleware(TokenAuthMiddleware):
    """Lets requests pass that carry the token or the cookie; logs browsers in.

    Args:
        app: the ASGI app to protect.
        token: the secret.
        cookie: the cookie's name. Cookies are shared between the ports of a host, so it should
            contain the port.
        login_codes: codes of one-time links; none if None.
    """

    def __init__(
        self, app: ASGIApp, token: str, cookie: str, login_codes: LoginCodes | None = None
    ) -> None:
        super().__init__(app, token)
        self._cookie = cookie
        self._cookie_value = secrets.token_urlsafe(SECRET_BYTES)
        self._login_codes = login_codes or LoginCodes()
        self._login_form = BodyLimitMiddleware(self._receive_login_form, MAX_LOGIN_BYTES)
        self._login_page = LoginPage()

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on if it is authenticated; otherwise log in, or answer 401."""
        if (scope["method"], scope["path"]) == ("POST", "/login"):
            await self._login_form(scope, receive, send)
        elif (response := self._follow_login_link(scope)) is not None:
            await response(scope, receive, send)
        else:
            await super().handle(scope, receive, send)

    def is_authenticated(self, headers: Headers) -> bool:
        """Return whether the headers have the token or the cookie."""
        cookie = cookie_parser(headers.get("cookie", "")).get(self._cookie, "")
        return is_equal_secret(cookie, self._cookie_value) or super().is_authenticated(headers)

    async def refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Show the login page to browsers; answer 401 to programs."""
        if _is_navigation(scope, Headers(scope=scope)):
            await self._login_page.response(_problem(scope))(scope, receive, send)
        else:
            message = "a token is required: open the URL that the server printed"
            raise HTTPException(401, message, UNAUTHENTICATED)

    def _follow_login_link(self, scope: Scope) -> Response | None:
        """Return a redirect that sets the cookie, if this is a valid login link."""
        if (scope["method"], scope["path"]) != ("GET", "/"):
            return None
        query = _query(scope)
        token, code = query.pop("token", ""), query.pop("login", "")
        if is_equal_secret(token, self.token) or self._login_codes.redeem(code):
            return self._log_in(f"/?{urlencode(query)}" if query else "/")
        return None

    async def _receive_login_form(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await Request(scope, receive).body()
        token = dict(parse_qsl(body.decode("latin-1"))).get("token", "").strip()
        is_valid = is_equal_secret(token, self.token)
        response = self._log_in("/") if is_valid else self._login_page.response("wrong-token")
        await response(scope, receive, send)

    def _log_in(self, url: str) -> Response:
        response = RedirectResponse(url, 303)
        response.set_cookie(self._cookie, self._cookie_value, httponly=True, samesite="strict")
        return response


class LoginPage:
    """The page for browsers without a cookie; in English and Chinese, without scripts."""

    def __init__(self) -> None:
        path = Path(__file__).parent / "static" / "login.html"
        self._html = path.read_text("utf-8")
        style = self._html.partition("<style>")[2].partition("</style>")[0]
        digest = b64encode(sha256(style.encode()).digest()).decode()
        self._headers = {
            **UNAUTHENTICATED,
            "Content-Security-Policy": (
                f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
                "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
            ),
            # with no-referrer, browsers send `Origin: null` with the form
            "Referrer-Policy": "same-origin",
        }

    def response(self, problem: LoginProblem) -> Response:
        """Return the page with 401; the problem selects a message."""
        html = self._html.replace('data-problem="none"', f'data-problem="{escape(problem)}"')
        return HTMLResponse(html, 401, self._headers)


def _query(scope: Scope) -> dict[str, str]:
    return dict(parse_qsl(scope["query_string"].decode("latin-1")))


def _is_navigation(scope: Scope, headers: Headers) -> bool:
    """Return whether a browser would show the response as a page."""
    is_page = not scope["path"].startswith("/api/")
    return is_page and scope["method"] == "GET" and "text/html" in headers.get("accept", "")


def _problem(scope: Scope) -> LoginProblem:
    query = _query(scope)
    if "login" in query:
        return "used-link"
    return "wrong-token" if "token" in query else "none"
