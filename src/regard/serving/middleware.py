"""The translation server's stack of ASGI middlewares, and what LibreTranslate's clients need."""

import json
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.serving.prometheus import Metrics, MetricsMiddleware
from regard.serving.schemas import LIMITS, ServingLimits
from regard.web import (
    MAX_CONCURRENT_REQUESTS,
    BodyLimitMiddleware,
    ConcurrencyLimitMiddleware,
    HostOriginMiddleware,
    RequestMiddleware,
    SecurityHeadersMiddleware,
    ServerAddress,
    TokenAuthMiddleware,
    is_equal_secret,
    replay_body,
)

FORM = "application/x-www-form-urlencoded"
MAX_FORM_FIELDS = 2000
OPEN_PATHS = ("/health",)  # which probes ask without a token; it reveals nothing


def secure_app(
    app: ASGIApp,
    address: ServerAddress,
    token: str | None,
    metrics: Metrics,
    limits: ServingLimits = LIMITS,
    max_requests: int = MAX_CONCURRENT_REQUESTS,
) -> ASGIApp:
    """Wrap an app in all middlewares.

    Args:
        app: the ASGI app to protect.
        address: where the server listens; requests for other hosts or from other origins get 403.
        token: secret that requests carry; None admits every request.
        metrics: count responses.
        limits: largest request bodies.
        max_requests: requests that may be in progress.
    """
    if token is not None:
        app = ApiKeyMiddleware(app, token)
    app = FormMiddleware(app)
    app = HeadMiddleware(app)
    app = BodyLimitMiddleware(app, limits.max_body_bytes)
    app = ConcurrencyLimitMiddleware(app, max_requests)
    app = HostOriginMiddleware(app, address)
    app = SecurityHeadersMiddleware(app)
    return MetricsMiddleware(app, metrics)


class HeadMiddleware(RequestMiddleware):
    """Answers HEAD as GET without the body, for health checks of load balancers."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, as GET if it is HEAD."""
        if scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        await self.app({**scope, "method": "GET"}, receive, send_head)


class FormMiddleware(RequestMiddleware):
    """Turns HTML forms and URL parameters, which many clients of LibreTranslate send, into JSON.

    URL parameters count if a form is posted, or a request without a content type. A field that is
    repeated becomes a list.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with its fields as JSON."""
        content_type = Headers(scope=scope).get("content-type", "").partition(";")[0].strip()
        is_form = content_type.lower() == FORM
        query = scope["query_string"] if scope["method"] == "POST" else b""
        if not is_form and (content_type or not query):
            await self.app(scope, receive, send)
            return
        form = await Request(scope, receive).body() if is_form else b""
        body = _form_to_json(b"&".join(filter(None, (query, form))))
        scope = {**scope, "headers": list(scope["headers"])}
        headers = MutableHeaders(scope=scope)
        headers["content-type"] = "application/json"
        headers["content-length"] = str(len(body))
        await self.app(scope, replay_body(body, receive), send)


class ApiKeyMiddleware(TokenAuthMiddleware):
    """Accepts the token also as `api_key` in the body, where LibreTranslate's clients put it."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on if it is authenticated or needs no token."""
        if scope["path"] in OPEN_PATHS or self.is_authenticated(Headers(scope=scope)):
            await self.app(scope, receive, send)
            return
        body = await Request(scope, receive).body()
        if is_equal_secret(_api_key(body), self.token):
            await self.app(scope, replay_body(body, receive), send)
        else:
            await self.refuse(scope, receive, send)


def _form_to_json(form: bytes) -> bytes:
    try:
        fields = parse_qsl(
            form.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS
        )
    except ValueError:  # too many fields
        return b"{}"
    values: dict[str, str | list[str]] = {}
    for name, value in fields:
        previous = values.get(name)
        if previous is None:
            values[name] = value
        else:
            values[name] = [*(previous if isinstance(previous, list) else [previous]), value]
    return json.dumps(values).encode()


def _api_key(body: bytes) -> str:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    key = content.get("api_key") if isinstance(content, dict) else None
    return key if isinstance(key, str) else ""
