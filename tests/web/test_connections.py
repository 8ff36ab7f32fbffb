import asyncio
import errno
import logging
import os
import resource
import socket
import threading
import time
from contextlib import contextmanager

import pytest

from regard.web import HTTPServer, connections, uvicorn_config
from regard.web.connections import MAX_CONNECTIONS, MIN_CONNECTIONS, connection_limit

pytestmark = pytest.mark.server

WAIT_SECONDS = 60  # on a busy machine
GET = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
POST_HEADERS = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 5\r\n\r\n"

requests_in_progress = []


async def echo_app(scope, receive, send):
    requests_in_progress.append("request")
    try:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message["body"]
            more = message.get("more_body", False)
        body = body or b"hello"
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})
    finally:
        requests_in_progress.pop()


@contextmanager
def serve(max_connections, listener=None):
    """Serve `echo_app` in a thread; yield a function that connects to it."""
    with listener or socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        config = uvicorn_config(echo_app)
        config.timeout_keep_alive = WAIT_SECONDS
        server = HTTPServer(config, max_connections=max_connections)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        opened = []

        def connect(data=b""):
            opened.append(socket.create_connection(listener.getsockname(), WAIT_SECONDS))
            opened[-1].sendall(data)
            return opened[-1]

        connect.server = server
        try:
            yield connect
        finally:
            for connection in opened:
                connection.close()
            server.should_exit = True
            thread.join()


def read_response(connection, body=b"hello"):
    """Assert that a response with this body arrives."""
    received = b""
    while not received.endswith(b"\r\n\r\n" + body):
        chunk = connection.recv(1000)
        assert chunk, f"closed after {received!r}"
        received += chunk


def start_request(connect):
    """Send headers without a body, and wait until the app handles the request."""
    count = len(requests_in_progress)
    connection = connect(POST_HEADERS)
    deadline = time.monotonic() + WAIT_SECONDS
    while len(requests_in_progress) == count:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    return connection


def test_connection_that_is_idle_longest_is_closed_for_a_new_one():
    with serve(max_connections=3) as connect:
        first, second, third = connect(), connect(), connect()
        for connection in (second, third, first):
            connection.sendall(GET)
            read_response(connection)
        third.sendall(GET[:9])  # the beginning of a request does not count
        fourth = connect(GET)
        read_response(fourth)
        assert second.recv(1) == b""
        fifth = connect(GET)
        read_response(fifth)
        assert third.recv(1) == b""
        for connection in (first, fourth, fifth):
            connection.sendall(GET)
            read_response(connection)


def test_request_in_progress_is_kept_among_any_number_of_idle_connections():
    with serve(max_connections=4) as connect:
        busy = start_request(connect)
        for _ in range(40):
            connect()
        read_response(connect(GET))
        busy.sendall(b"after")
        read_response(busy, b"after")


def test_new_connection_waits_while_all_are_busy():
    with serve(max_connections=2) as connect:
        first, second = start_request(connect), start_request(connect)
        waiting = connect(GET)
        waiting.settimeout(0.3)
        with pytest.raises(TimeoutError):
            waiting.recv(1)
        waiting.settimeout(WAIT_SECONDS)
        first.sendall(b"first")
        read_response(first, b"first")
        read_response(waiting)
        second.sendall(b"later")
        read_response(second, b"later")


def test_connections_that_wait_at_a_shutdown_are_answered(monkeypatch):
    async def accept_none(self, listener):
        await asyncio.Event().wait()

    monkeypatch.setattr(connections.ConnectionAcceptor, "accept_forever", accept_none)
    with serve(max_connections=8) as connect:
        waiting = [connect(GET) for _ in range(3)]
        connect.server.should_exit = True
        for connection in waiting:
            read_response(connection)


def test_connection_that_arrives_as_accepting_is_cancelled_is_not_lost():
    async def accept_and_cancel():
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            acceptor = connections.ConnectionAcceptor(lambda: None, [], max_connections=8)
            task = asyncio.create_task(acceptor.accept_forever(listener))
            await asyncio.sleep(0.01)
            with socket.create_connection(listener.getsockname()):
                # cancelled in the round of the event loop that finds the connection
                asyncio.get_running_loop().call_soon(task.cancel)
                await asyncio.wait([task])
                listener.accept()[0].close()

    asyncio.run(accept_and_cancel())


class ExhaustedListener(socket.socket):
    """A listening socket that fails a few times as if no files were left."""

    failures = 5

    def accept(self):
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().accept()


def test_accepting_resumes_after_running_out_of_files_with_one_log_line(caplog, monkeypatch):
    monkeypatch.setattr(connections, "ACCEPT_RETRY_SECONDS", 0.001)
    listener = ExhaustedListener()
    with caplog.at_level(logging.WARNING), serve(8, listener) as connect:
        read_response(connect(GET))
    assert listener.failures == 0
    assert [record.getMessage() for record in caplog.records] == [
        "cannot accept connections (Too many open files); trying again. "
        "A higher `ulimit -n` allows more."
    ]
    assert caplog.records[0].exc_info is None


@pytest.mark.parametrize(
    ("max_files", "expected"),
    [
        (128, 64),
        (1024, MAX_CONNECTIONS),
        (resource.RLIM_INFINITY, MAX_CONNECTIONS),
        (4, MIN_CONNECTIONS),
    ],
)
def test_connection_limit_is_half_of_the_open_files(monkeypatch, max_files, expected):
    monkeypatch.setattr(connections.resource, "getrlimit", lambda _: (max_files, max_files))
    assert connection_limit() == expected
