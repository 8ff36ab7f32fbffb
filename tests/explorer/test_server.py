import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from regard.errors import RegardError
from regard.explorer import server as serve_file
from regard.explorer.server import serve

WAIT = 300  # seconds until a test that hangs fails
BODY = json.dumps({"run": "small", "text": "the old cat sees the dog"}).encode()


class Server:
    """A server in a process of its own."""

    def __init__(self, *arguments):
        command = [sys.executable, "-m", "regard", "explore", *arguments, "--port", "0"]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        self.told = self.process.stdout.readline()
        match = re.search(r"http://127\.0\.0\.1:(\d+)/", self.told)
        assert match, self.process.communicate(timeout=WAIT)
        self.port = int(match[1])

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=WAIT)

    def begin(self, body=BODY, sent=None):
        """Send a request, or the first bytes of it, and do not wait for the answer."""
        connection = self.connect()
        head = (
            f"POST /api/translate HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        connection.sendall((head.encode() + body)[: sent or len(head) + len(body)])
        return connection

    def get(self, path):
        asked = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT)
        asked.request("GET", path)
        answer = asked.getresponse()
        told = answer.status, json.loads(answer.read())
        asked.close()
        return told

    def end(self, how):
        self.process.send_signal(how)
        _, errors = self.process.communicate(timeout=WAIT)
        return self.process.returncode, errors


def answer(connection):
    read = http.client.HTTPResponse(connection)
    read.begin()
    told = read.status, json.loads(read.read())
    connection.close()
    return told


@pytest.fixture
def server(trained):
    server = Server(str(trained))
    yield server
    if server.process.poll() is None:
        server.process.kill()
        server.process.communicate()


def test_slow_clients_hold_nobody_up_and_a_stop_finishes_what_runs(server):
    head = 40  # bytes: within the first line or two
    slow = [server.begin(sent=head) for _ in range(20)]
    slower = [server.begin(sent=len(BODY) + head) for _ in range(20)]  # within the body
    assert answer(server.begin())[0] == 200
    long = json.dumps({"run": "small", "text": "the old cat " * 12, "beam_size": 12}).encode()
    running = server.begin(long)
    assert server.get("/api/runs")[0] == 200  # so the one before has arrived
    for connection in slow + slower:
        connection.close()
    code, errors = server.end(signal.SIGTERM)
    status, told = answer(running)
    assert (status, len(told["translations"])) == (200, 1)
    assert (code, errors) == (0, "")


def test_two_runs_are_served_side_by_side(trained, tmp_path):
    other = shutil.copytree(trained, tmp_path / "other")
    server = Server(str(trained), str(other))
    status, told = server.get("/api/runs")
    server.end(signal.SIGINT)
    assert status == 200
    assert {trained.name, "other"} <= set(re.findall(r'"name": "([^"]+)"', json.dumps(told)))


def test_a_port_that_is_taken_is_told_of_before_anything_is_loaded(trained):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RegardError, match=f"cannot listen on port {port} of 127.0.0.1: "):
            serve([trained / "nowhere"], [], "127.0.0.1", port)


def test_a_host_that_is_not_there_is_told_of():
    with pytest.raises(RegardError, match="cannot listen on 'no.such.host.invalid'"):
        serve([], [], "no.such.host.invalid", 0)


def test_a_port_is_taken_from_the_first_moment_on():
    with serve_file._bound("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        message = f"cannot listen on port {port} of 127.0.0.1: "
        with pytest.raises(RegardError, match=message), serve_file._bound("127.0.0.1", port):
            pass


@pytest.mark.parametrize("host", ["a" * 70, "a..b"])
def test_a_host_that_no_host_can_be_called_is_told_of(host):
    with pytest.raises(RegardError, match=f"cannot listen on '{host}'"):
        serve([], [], host, 0)


def until(holds):
    """Wait until something is so."""
    end = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def started(monkeypatch):
    """Start everything but the server itself; give what would have been served."""
    servers, opened = [], []

    def run(self, sockets):
        servers.append(self.config.app)
        self._tell()

    monkeypatch.setattr(serve_file._Server, "run", run)
    monkeypatch.setattr(serve_file.webbrowser, "open", opened.append)
    return servers, opened


def test_another_host_needs_a_token_which_is_told_and_never_the_same(trained, started):
    said, (doors, opened) = [], started
    for _ in range(2):
        serve([trained], [], "0.0.0.0", 0, open_page=True, say=said.append)
    tokens = [re.search(r"/\?token=([\w-]{32,})  ", line)[1] for line in said]
    assert tokens == [door._token for door in doors] and len(set(tokens)) == 2
    until(lambda: len(opened) == 2)
    assert {url.rpartition("=")[2] for url in opened} == set(tokens)


def test_a_browser_that_stays_in_the_terminal_does_not_hold_the_server_up(
    trained, started, monkeypatch
):
    close, closed = threading.Event(), []

    def reads(url):
        close.wait(20)
        closed.append(url)

    monkeypatch.setattr(serve_file.webbrowser, "open", reads)
    serve([trained], [], "127.0.0.1", 0, open_page=True, say=lambda line: None)
    assert closed == []  # the browser is still open, and the server has gone on
    close.set()
    until(lambda: closed)


def test_this_machine_alone_needs_none(trained, started):
    said, (doors, opened) = [], started
    serve([trained], [], "127.0.0.1", 0, say=said.append)
    assert doors[0]._token is None and "token" not in said[0]
    assert opened == []


def test_without_a_run_the_demos_is_taken_and_with_a_trace_none(
    run, started, monkeypatch, tmp_path, client
):
    asked, said = [], []
    monkeypatch.setattr(serve_file, "load_or_train", lambda: asked.append("demo") or run)
    serve([], [], "127.0.0.1", 0, say=said.append)
    assert asked == ["demo"] and "trained once, and kept" in said[0]
    path = tmp_path / "trace.json"
    form = {"run": "small", "source": "the cat", "target": "le chat"}
    path.write_text(client.post("/api/traces", json=form).text)
    serve([], [path], "127.0.0.1", 0, say=said.append)
    assert asked == ["demo"]
