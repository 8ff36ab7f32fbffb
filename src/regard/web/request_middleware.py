"""Base class of the ASGI middlewares."""

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from regard.web.error_handlers import error_response


class RequestMiddleware:
    """Passes HTTP requests to `handle` and answers its `HTTPException`s.

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
