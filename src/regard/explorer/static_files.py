"""The page's files, served from memory.

They are answered before a request counts towards the concurrency limit and without a thread, so
that the page opens quickly while models run. Starlette's `StaticFiles` reads them from disk in a
thread, of which each competes with the workers for the interpreter.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from regard.viz import STATIC_FOLDER as VIZ_STATIC
from regard.web import RequestMiddleware

STATIC = Path(__file__).parent / "static"

# not from `mimetypes`, which asks the operating system
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class StaticFile:
    """Contents of a file, with the headers of its response."""

    content: bytes
    media_type: str
    etag: str


def load_static_files() -> dict[str, StaticFile]:
    """Read the page's files, by path of their URL."""
    files = {
        f"{prefix}/{path.relative_to(folder).as_posix()}": _load(path)
        for prefix, folder in (("/static", STATIC), ("/viz", VIZ_STATIC))
        for path in sorted(folder.rglob("*"))
        if path.suffix in MEDIA_TYPES
    }
    return {"/": files["/static/index.html"], **files}


def _load(path: Path) -> StaticFile:
    content = path.read_bytes()
    return StaticFile(content, MEDIA_TYPES[path.suffix], f'"{sha256(content).hexdigest()[:32]}"')


class StaticFilesMiddleware(RequestMiddleware):
    """Answers requests for the page's files; passes on any other.

    Args:
        app: the ASGI app for other paths.
        files: files by path; those of the page if None.
    """

    def __init__(self, app: ASGIApp, files: Mapping[str, StaticFile] | None = None) -> None:
        super().__init__(app)
        self._files = load_static_files() if files is None else files

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file of this path, or 304 if the client has it."""
        file = self._files.get(scope["path"])
        if file is None:
            await self.app(scope, receive, send)
            return
        if scope["method"] not in ("GET", "HEAD"):
            raise HTTPException(405, "method not allowed for this path", {"Allow": "GET, HEAD"})
        await _respond(file, Headers(scope=scope))(scope, receive, send)


def _respond(file: StaticFile, request_headers: Headers) -> Response:
    known = [tag.strip().removeprefix("W/") for tag in _if_none_match(request_headers)]
    if file.etag in known or "*" in known:
        return Response(status_code=304, headers={"ETag": file.etag})
    return Response(file.content, media_type=file.media_type, headers={"ETag": file.etag})


def _if_none_match(headers: Headers) -> list[str]:
    return headers.get("if-none-match", "").split(",")
