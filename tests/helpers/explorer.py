"""A server of the explorer in a thread, and assertions about its error responses."""

import faulthandler
import socket
import sys
import threading
from contextlib import contextmanager

import pytest

from regard.explorer import (
    RequestPool,
    RunRegistry,
    ServerAddress,
    TraceRegistry,
    create_app,
    secure_app,
)
from regard.explorer.static_files import VIZ_STATIC
from regard.web import HTTPServer, uvicorn_config

SHUTDOWN_SECONDS = 120  # on a busy machine
SCRIPT_PATH = f"/viz/{min(VIZ_STATIC.glob('*.js')).name}"  # of some JavaScript module


def error_message(response, status):
    """Assert that a response is an error of that status with one sentence, and return it."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert list(body) == ["error"] and body["error"].endswith(".")
    assert "Traceback" not in body["error"] and "\n" not in body["error"]
    return body["error"]


@contextmanager
def serve_in_thread(runs, traces=(), token=None, max_connections=None):
    """Serve runs and traces on a free port; yield the URL."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()  # connections wait until the thread accepts them
        port = listener.getsockname()[1]
        app = create_app(RunRegistry(runs), TraceRegistry(traces), RequestPool(workers=2))
        server = HTTPServer(
            uvicorn_config(secure_app(app, ServerAddress("127.0.0.1", port), token)),
            max_connections=max_connections,
        )
        options = {"kwargs": {"sockets": [listener]}, "daemon": True}
        thread = threading.Thread(target=server.run, **options)
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}/"
        finally:
            server.should_exit = True
            thread.join(SHUTDOWN_SECONDS)
            if thread.is_alive():
                faulthandler.dump_traceback(sys.__stderr__)
                pytest.fail(f"the server did not stop within {SHUTDOWN_SECONDS} seconds")
