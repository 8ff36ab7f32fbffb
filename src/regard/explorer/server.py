"""`serve`: binds the port, builds the explorer's app and runs it until SIGINT or SIGTERM."""

import secrets
import threading
import webbrowser
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch
from starlette.types import ASGIApp

from regard.explorer.app import create_app
from regard.explorer.auth import SECRET_BYTES, LoginCodes, LoginMiddleware
from regard.explorer.runs import RunRegistry
from regard.explorer.schemas import LIMITS, ExplorerLimits
from regard.explorer.static_files import StaticFilesMiddleware
from regard.explorer.traces import TraceRegistry, preload_phrasebooks
from regard.explorer.workers import REQUEST_TIMEOUT_SECONDS
from regard.runs import DEMO_MODEL, Run, describe_engine, find_run
from regard.web import (
    BODY_TIMEOUT_SECONDS,
    MAX_CONCURRENT_REQUESTS,
    BodyLimitMiddleware,
    ConcurrencyLimitMiddleware,
    HostOriginMiddleware,
    HTTPServer,
    SecurityHeadersMiddleware,
    ServerAddress,
    bind_socket,
    check_needs_token,
    connection_limit,
    uvicorn_config,
)

UPLOAD_PATHS = ("/api/traces/open", "/api/traces/contents")


def serve(
    runs: Sequence[Path] = (),
    traces: Sequence[Path] = (),
    host: str = "127.0.0.1",
    port: int = 8765,
    *,
    needs_token: bool = True,
    open_page: bool = False,
    engine: str = "auto",
    quantization: str | None = None,
    verbose: bool = False,
    echo: Callable[[str], None] = print,
) -> None:
    """Serve the explorer until SIGINT or SIGTERM; requests in progress are finished.

    Args:
        runs: run folders; the shipped model if neither runs nor traces are given.
        traces: trace files.
        host: address to listen on.
        port: port to listen on; 0 picks a free one.
        needs_token: whether requests need a token, which is random and part of the printed URL.
            False is for loopback addresses only, and gives access to every user of this machine.
        open_page: whether to open the page in a browser, by a link that is valid once.
        engine: what translates; see `regard.load`.
        quantization: of CTranslate2; see `regard.load`.
        verbose: whether to print which engine translates with a run when it is loaded, and why.
        echo: prints messages for the user.

    Raises:
        RegardError: if the port cannot be bound, a path is no run or no trace, there is no such
            engine or quantization, or `needs_token` is False for an address that is not loopback.
    """
    check_needs_token(host, needs_token)
    with bind_socket(host, port) as listener:
        address = ServerAddress(host, listener.getsockname()[1])
        trace_registry = TraceRegistry(traces)
        if not (runs or traces):
            echo("No run given: using the English-French model that the package ships.")
            runs = [find_run(DEMO_MODEL)]
        on_load = partial(_describe_run, engine, echo) if verbose else None
        run_registry = RunRegistry(runs, engine=engine, quantization=quantization, on_load=on_load)
        preload_phrasebooks(map(run_registry.phrasebook, run_registry.names))
        token = secrets.token_urlsafe(SECRET_BYTES) if needs_token else None
        login_codes = LoginCodes()
        torch.set_num_threads(1)  # of each worker
        app = secure_app(
            create_app(run_registry, trace_registry),
            address,
            token,
            login_codes,
            # of all connections: the others wait for a request, or are being refused
            max_requests=min(MAX_CONCURRENT_REQUESTS, connection_limit() // 2),
        )

        def announce() -> None:
            query = "" if token is None else f"?token={token}"
            echo(f"The explorer is at {address.url}{query}  (Ctrl-C stops it)")
            if open_page:
                login = "" if token is None else f"?login={login_codes.create()}"
                _open_browser(f"{address.url}{login}")

        HTTPServer(
            uvicorn_config(app, shutdown_seconds=int(REQUEST_TIMEOUT_SECONDS) + 5),
            on_started=announce,
        ).run([listener])


def _describe_run(engine: str, echo: Callable[[str], None], name: str, run: Run) -> None:
    echo(f"{name}: {describe_engine(run.engine, run.model, engine)}")


def _open_browser(url: str) -> None:
    """Open a page in a thread: a text browser blocks until it is closed."""
    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()


def secure_app(
    app: ASGIApp,
    address: ServerAddress,
    token: str | None = None,
    login_codes: LoginCodes | None = None,
    limits: ExplorerLimits = LIMITS,
    body_timeout_seconds: float = BODY_TIMEOUT_SECONDS,
    max_requests: int = MAX_CONCURRENT_REQUESTS,
) -> ASGIApp:
    """Wrap an app in all middlewares, and serve the page's files.

    Args:
        app: the ASGI app to protect.
        address: where the server listens; requests for other hosts or from other origins get 403.
        token: secret to log in with, and to send as a bearer token; None disables authentication.
        login_codes: codes of one-time login links.
        limits: largest request bodies.
        body_timeout_seconds: time within which a request body must have arrived.
        max_requests: requests that may be in progress, those of the page's files not counted.
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
