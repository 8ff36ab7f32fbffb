"""The server: one port, until it is told to stop."""

from collections.abc import Callable
from pathlib import Path

import uvicorn

from regard.explorer.app import create_app
from regard.explorer.saved import Saved
from regard.explorer.shelf import Shelf


def serve(
    runs: list[Path],
    traces: list[Path],
    host: str,
    port: int,
    *,
    open_page: bool,
    say: Callable[[str], None],
) -> None:
    """Serve the page and its API."""
    uvicorn.run(create_app(Shelf(runs), Saved(traces)), host=host, port=port)
