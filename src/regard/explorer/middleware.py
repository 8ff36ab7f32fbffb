"""The explorer's stack of ASGI middlewares."""

from starlette.types import ASGIApp

from regard.explorer.auth import LoginCodes, LoginMiddleware
from regard.explorer.schemas import LIMITS, Limits
from regard.explorer.static_files import StaticFilesMiddleware
from regard.web import (
    BODY_TIMEOUT_SECONDS,
    MAX_CONCURRENT_REQUESTS,
    BodyLimitMiddleware,
    ConcurrencyLimitMiddleware,
    HostOriginMiddleware,
    SecurityHeadersMiddleware,
    ServerAddress,
)

UPLOAD_PATHS = ("/api/traces/open", "/api/traces/contents")


def secure_app(
    app: ASGIApp,
    address: ServerAddress,
    token: str | None = None,
    login_codes: LoginCodes | None = None,
    limits: Limits = LIMITS,
    body_timeout_seconds: float = BODY_TIMEOUT_SECONDS,
    max_requests: int = MAX_CONCURRENT_REQUESTS,
) -> ASGIApp:
    """Wrap an app in all middlewares, and serve the page's files.

    Args:
        app: The ASGI app to protect.
        address: Where the server listens; requests for other hosts or from other origins get 403.
        token: Secret to log in with, and to send as a bearer token; None lets everybody in.
        login_codes: Codes of one-time login links.
        limits: Largest request bodies.
        body_timeout_seconds: Time within which a request body must have arrived.
        max_requests: Requests that may be in progress, those of the page's files not counted.
    """
    max_upload_bytes = dict.fromkeys(UPLOAD_PATHS, limits.max_trace_bytes)
    app = BodyLimitMiddleware(
        app, limits.max_body_bytes, max_upload_bytes, timeout_seconds=body_timeout_seconds
    )
    app = ConcurrencyLimitMiddleware(app, max_requests)
    app = StaticFilesMiddleware(app)
    if token is not None:
        app = LoginMiddleware(app, token, f"regard-{address.port}", login_codes)
    app = HostOriginMiddleware(app, address)
    return SecurityHeadersMiddleware(app)
