import socket
import threading
import time
from contextlib import contextmanager

import pytest
import uvicorn

from regard.explorer.middleware import Address, Door
from regard.explorer.server import _config
from regard.explorer.timeouts import Impatient

WAIT = 60  # seconds that a busy machine may take
HEAD = b"GET / HTTP/1.1\r\nHost: here\r\n"


LONG = b"x" * (1 << 24)  # more than the system keeps for a client that does not read


async def says_much(send):
    """Answer at length, in parts; `busy` has one entry for each answer that is under way."""
    busy.append("answer")
    try:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(8):
            await send({"type": "http.response.body", "body": LONG, "more_body": True})
        await send({"type": "http.response.body", "body": b"hello"})
    finally:
        busy.pop()


busy = []


async def says_hello(scope, receive, send):
    if scope["path"] == "/much":
        await says_much(send)
        return
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]}
    )
    await send({"type": "http.response.body", "body": b"hello"})


class Quick(Impatient):
    seconds = taking = 1.0


@pytest.fixture
def connect():
    """Open connections to a server that waits a second for a head."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            says_hello,
            http=Quick,
            ws="none",
            lifespan="off",
            log_level="error",
            timeout_keep_alive=WAIT,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        while not server.started:
            time.sleep(0.01)

        @contextmanager
        def enter():
            with socket.create_connection(listener.getsockname(), timeout=WAIT) as connection:
                yield connection

        yield enter
        server.should_exit = True
        thread.join()


def answered(connection):
    """Read one answer, or nothing if the connection was closed."""
    found = b""
    while not found.endswith(b"hello"):
        part = connection.recv(1000)
        if not part:
            return found
        found += part
    return found


def test_who_sends_a_head_byte_by_byte_without_end_is_let_go(connect):
    with connect() as connection:
        began = time.monotonic()
        with pytest.raises(OSError):  # the other side is gone
            while time.monotonic() - began < WAIT:
                connection.sendall(b"G")
                time.sleep(0.1)
        assert time.monotonic() - began >= 1


def test_who_says_nothing_at_all_is_let_go(connect):
    with connect() as connection:
        assert connection.recv(1) == b""


def test_the_time_of_a_second_head_begins_with_its_first_byte(connect):
    with connect() as connection:
        for _ in range(2):
            connection.sendall(HEAD + b"\r\n")
            assert answered(connection).endswith(b"\r\n\r\nhello")
            time.sleep(1.5)  # nobody is let go for thinking about what to ask next
        connection.sendall(HEAD)
        assert connection.recv(1) == b""


def test_a_head_that_is_slow_but_in_time_is_answered(connect):
    with connect() as connection:
        connection.sendall(HEAD)
        time.sleep(0.2)
        connection.sendall(b"\r\n")
        assert answered(connection).endswith(b"hello")


def test_who_does_not_read_the_answer_is_let_go_and_its_request_ends(connect):
    with connect() as connection:
        connection.sendall(HEAD.replace(b"/", b"/much", 1) + b"\r\n")
        while not busy:
            time.sleep(0.01)
        began = time.monotonic()
        while busy:
            assert time.monotonic() - began < WAIT
            time.sleep(0.01)
        with pytest.raises(ConnectionError):  # what is left of the answer is not waited for
            while connection.recv(1 << 20):
                pass
            raise ConnectionError


def test_who_reads_slowly_but_reads_gets_the_whole_answer(connect):
    with connect() as connection:
        connection.sendall(HEAD.replace(b"/", b"/much", 1) + b"Connection: close\r\n\r\n")
        read, began = 0, time.monotonic()
        while part := connection.recv(1 << 20):
            read += len(part)
            if time.monotonic() - began < 3:
                time.sleep(0.1)
        assert read > 8 * len(LONG)


def test_the_explorer_is_served_so():
    assert _config(Door(says_hello, Address())).http is Impatient
