"""Token authentication by `Authorization: Bearer`."""

import secrets

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from regard.web.request_middleware import RequestMiddleware

UNAUTHENTICATED = {"WWW-Authenticate": "Bearer"}


class TokenAuthMiddleware(RequestMiddleware):
    """Lets requests pass that carry the token; subclasses may accept more.

    Args:
        app: The ASGI app to protect.
        token: The secret.
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
