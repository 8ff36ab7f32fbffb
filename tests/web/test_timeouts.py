import socket
import threading
import time
from contextlib import contextmanager, suppress

import pytest
import uvicorn

from regard.web import uvicorn_config
from regard.web.timeouts import TimeoutH11Protocol

pytestmark = pytest.mark.server

WAIT_SECONDS = 60  # on a busy machine
HEADERS = b"GET / HTTP/1.1\r\nHost: here\r\n"
LARGE_HEADERS = HEADERS.replace(b"/", b"/large", 1)
CHUNK = b"x" * (1 << 24)  # more than socket buffers hold for a client that does not read

active_responses = []  # one entry for each large response in progress


async def send_large_response(send):
    active_responses.append("response")
    try:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(8):
            await send({"type": "http.response.body", "body": CHUNK, "more_body": True})
        await send({"type": "http.response.body", "body": b"hello"})
    finally:
        active_responses.pop()


async def hello_app(scope, receive, send):
    if scope["path"] == "/large":
        await send_large_response(send)
        return
    headers = [(b"content-length", b"5")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"hello"})


class OneSecondProtocol(TimeoutH11Protocol):
    header_timeout_seconds = write_timeout_seconds = 1.0


@pytest.fixture
def connect():
    """Return a context manager that connects to a server with timeouts of one second."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            hello_app,
            http=OneSecondProtocol,
            ws="none",
            lifespan="off",
            log_level="error",
            timeout_keep_alive=WAIT_SECONDS,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        while not server.started:
            time.sleep(0.01)

        @contextmanager
        def open_connection():
            with socket.create_connection(listener.getsockname(), WAIT_SECONDS) as connection:
                yield connection

        yield open_connection
        server.should_exit = True
        thread.join()


def read_response(connection):
    """Return one response, or what was received before the connection was closed."""
    received = b""
    while not received.endswith(b"hello"):
        chunk = connection.recv(1000)
        if not chunk:
            return received
        received += chunk
    return received


def test_client_that_sends_headers_byte_by_byte_is_disconnected(connect):
    with connect() as connection:
        start = time.monotonic()
        with pytest.raises(OSError):  # closed by the server
            while time.monotonic() - start < WAIT_SECONDS:
                connection.sendall(b"G")
                time.sleep(0.1)
        assert time.monotonic() - start >= 1


def test_silent_client_is_disconnected(connect):
    with connect() as connection:
        assert connection.recv(1) == b""


def test_header_timeout_of_a_later_request_starts_with_its_first_byte(connect):
    with connect() as connection:
        for _ in range(2):
            connection.sendall(HEADERS + b"\r\n")
            assert read_response(connection).endswith(b"\r\n\r\nhello")
            time.sleep(1.5)  # an idle connection stays open
        connection.sendall(HEADERS)
        assert connection.recv(1) == b""


def test_headers_that_arrive_in_time_are_answered(connect):
    with connect() as connection:
        connection.sendall(HEADERS)
        time.sleep(0.2)
        connection.sendall(b"\r\n")
        assert read_response(connection).endswith(b"hello")


def test_client_that_does_not_read_is_disconnected_and_its_request_ends(connect):
    with connect() as connection:
        connection.sendall(LARGE_HEADERS + b"\r\n")
        while not active_responses:
            time.sleep(0.01)
        start = time.monotonic()
        while active_responses:
            assert time.monotonic() - start < WAIT_SECONDS
            time.sleep(0.01)
        with pytest.raises(ConnectionError):  # the rest of the response is not sent
            while connection.recv(1 << 20):
                pass
            raise ConnectionError


def test_client_that_reads_slowly_receives_the_whole_response(connect):
    with connect() as connection:
        connection.sendall(LARGE_HEADERS + b"Connection: close\r\n\r\n")
        received, start = 0, time.monotonic()
        while chunk := connection.recv(1 << 20):
            received += len(chunk)
            if time.monotonic() - start < 3:
                time.sleep(0.1)
        assert received > 8 * len(CHUNK)


@pytest.mark.parametrize("path", [b"/", b"/large"])
@pytest.mark.parametrize("has_begun", [False, True], ids=["at once", "later"])
def test_malformed_body_ends_its_request_without_a_traceback(connect, caplog, path, has_begun):
    with connect() as connection:
        connection.sendall(HEADERS.replace(b"/", path, 1) + b"Transfer-Encoding: chunked\r\n\r\n")
        if has_begun:
            assert connection.recv(100).startswith(b"HTTP/1.1 200 ")
        with suppress(ConnectionError):
            connection.sendall(b"no chunk\r\n")
            while connection.recv(1 << 20):
                pass
    with connect() as connection:  # the server goes on
        connection.sendall(HEADERS + b"\r\n")
        assert read_response(connection).endswith(b"hello")
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
def test_malformed_body_is_answered_once(connect, caplog, method):
    with connect() as connection:
        headers = HEADERS.replace(b"GET", method)
        connection.sendall(headers + b"Transfer-Encoding: chunked\r\n\r\nno chunk\r\n")
        received = b""
        while chunk := connection.recv(1000):
            received += chunk
    assert received.startswith(b"HTTP/1.1 400 ") and received.count(b"HTTP/1.1") == 1
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_server_uses_the_protocol_with_timeouts():
    assert uvicorn_config(hello_app).http is TimeoutH11Protocol
