"""Clients and live servers of the translation server."""

import shutil
import socket
import threading
from contextlib import contextmanager

import pytest
from starlette.testclient import TestClient

from regard.serving import (
    LanguagePair,
    Metrics,
    ServedRun,
    ServingConfig,
    ServingLimits,
    TranslationService,
    build_server,
    create_app,
    secure_app,
)
from regard.web import ServerAddress

PORT = 5000
EN_FR = LanguagePair("en", "fr")
SHUTDOWN_SECONDS = 120  # on a busy machine


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def run_copy(tiny_run, tmp_path):
    """A copy of the run that a test may modify."""
    return shutil.copytree(tiny_run, tmp_path / "copy")


@pytest.fixture
def make_client(tiny_run):
    """Return a context manager with a client of an app, like a program on the same machine."""

    @contextmanager
    def make(runs=None, token=None, limits=None, **options):
        limits, metrics = limits or ServingLimits(), Metrics()
        served = runs or [ServedRun(tiny_run, EN_FR, "torch")]
        service = TranslationService(served, metrics, limits, threads=1, **options)
        app = secure_app(
            create_app(service), ServerAddress("127.0.0.1", PORT), token, metrics, limits
        )
        url = f"http://127.0.0.1:{PORT}"
        with TestClient(app, base_url=url, raise_server_exceptions=False) as client:
            yield client

    return make


@pytest.fixture
def client(make_client):
    with make_client() as client:
        yield client


@pytest.fixture
def serve_in_thread():
    """Return a context manager that serves run folders on a free port; it yields the URL."""

    @contextmanager
    def start(*runs, **options):
        config = ServingConfig(tuple((run, EN_FR) for run in runs), **options)
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            address = ServerAddress("127.0.0.1", listener.getsockname()[1])
            server = build_server(config, address)
            thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
            thread.start()
            try:
                yield address.url, server
            finally:
                server.should_exit = True
                thread.join(SHUTDOWN_SECONDS)
                assert not thread.is_alive(), "the server did not stop"

    return start
