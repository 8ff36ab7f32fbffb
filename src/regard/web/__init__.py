"""What every HTTP server of regard shares: access control, limits and timeouts.

The explorer and the translation server are ASGI apps behind the same middlewares, outermost first:
`SecurityHeadersMiddleware` (content security policy), `HostOriginMiddleware` (DNS rebinding, CSRF;
403), `TokenAuthMiddleware` (401), `ConcurrencyLimitMiddleware` (503) and `BodyLimitMiddleware`
(408, 413), which reads the body. Each server stacks them by itself, with what only it needs between
them.

- `server` has `HTTPServer`, uvicorn with a limit of connections (`connections`), timeouts for slow
  clients (`timeouts`) and a graceful shutdown.
- `error_handlers` answers every failed request with `{"error": "one sentence"}`.
- `api_docs` renders the OpenAPI document as a page without scripts, which the content security
  policy of the servers would refuse.
"""

from regard._support.extras import needs_extra

with needs_extra("explorer", "an HTTP server needs"):
    from regard.web.api_docs import render_api_docs
    from regard.web.body_limit import BODY_TIMEOUT_SECONDS, BodyLimitMiddleware, replay_body
    from regard.web.connections import connection_limit
    from regard.web.error_handlers import ERROR_RESPONSES, error_response, install_error_handlers
    from regard.web.middleware import (
        MAX_CONCURRENT_REQUESTS,
        SECURITY_HEADERS,
        UNAUTHENTICATED,
        ConcurrencyLimitMiddleware,
        HostOriginMiddleware,
        RequestMiddleware,
        SecurityHeadersMiddleware,
        ServerAddress,
        TokenAuthMiddleware,
        check_needs_token,
        is_equal_secret,
    )
    from regard.web.server import HTTPServer, bind_socket, uvicorn_config

__all__ = [
    "BODY_TIMEOUT_SECONDS",
    "ERROR_RESPONSES",
    "MAX_CONCURRENT_REQUESTS",
    "SECURITY_HEADERS",
    "UNAUTHENTICATED",
    "BodyLimitMiddleware",
    "ConcurrencyLimitMiddleware",
    "HTTPServer",
    "HostOriginMiddleware",
    "RequestMiddleware",
    "SecurityHeadersMiddleware",
    "ServerAddress",
    "TokenAuthMiddleware",
    "bind_socket",
    "check_needs_token",
    "connection_limit",
    "error_response",
    "install_error_handlers",
    "is_equal_secret",
    "render_api_docs",
    "replay_body",
    "uvicorn_config",
]
