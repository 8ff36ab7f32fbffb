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
from starlette.testclient import TestClient

from regard.errors import RegardError
from regard.explorer import serve, server
from regard.explorer.server import bind_socket

WAIT_SECONDS = 300  # until a test that hangs fails
BODY = json.dumps({"run": "tiny", "text": "the old cat sees the dog"}).encode()


class ServerProcess:
    """`regard explore` in a process of its own."""

    def __init__(self, *arguments):
        command = [sys.executable, "-m", "regard", "explore", *arguments, "--port", "0"]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        match = re.search(r"http://127\.0\.0\.1:(\d+)/", self.process.stdout.readline())
        assert match, self.process.communicate(timeout=WAIT_SECONDS)
        self.port = int(match[1])

    def send_request(self, body=BODY, num_bytes=None):
        """Send a request, or its first bytes, and return the connection."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=WAIT_SECONDS)
        headers = (
            f"POST /api/translate HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        connection.sendall((headers.encode() + body)[:num_bytes])
        return connection

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_SECONDS)
        connection.request("GET", path)
        response = connection.getresponse()
        result = response.status, json.loads(response.read())
        connection.close()
        return result

    def stop(self, signal_number):
        """Send a signal and return exit code and stderr."""
        self.process.send_signal(signal_number)
        _, errors = self.process.communicate(timeout=WAIT_SECONDS)
        return self.process.returncode, errors


def read_response(connection):
    response = http.client.HTTPResponse(connection)
    response.begin()
    result = response.status, json.loads(response.read())
    connection.close()
    return result


@pytest.fixture
def server_process(tiny_run):
    process = ServerProcess(str(tiny_run))
    yield process
    if process.process.poll() is None:
        process.process.kill()
        process.process.communicate()


def test_slow_clients_block_nobody_and_sigterm_finishes_running_requests(server_process):
    partial = 40  # bytes: within the first lines of the headers
    slow = [server_process.send_request(num_bytes=partial) for _ in range(20)]
    slow += [server_process.send_request(num_bytes=len(BODY) + partial) for _ in range(20)]
    assert read_response(server_process.send_request())[0] == 200
    long = json.dumps({"run": "tiny", "text": "the old cat " * 12, "beam_size": 12}).encode()
    running = server_process.send_request(long)
    assert server_process.get("/api/runs")[0] == 200  # so the request before has arrived
    for connection in slow:
        connection.close()
    exit_code, errors = server_process.stop(signal.SIGTERM)
    status, body = read_response(running)
    assert (status, len(body["translations"])) == (200, 1)
    assert (exit_code, errors) == (0, "")


def test_explore_serves_two_runs(tiny_run, tmp_path):
    other = shutil.copytree(tiny_run, tmp_path / "other")
    process = ServerProcess(str(tiny_run), str(other))
    status, body = process.get("/api/runs")
    process.stop(signal.SIGINT)
    assert status == 200
    assert [run["name"] for run in body["runs"]] == [tiny_run.name, "other"]


def test_taken_port_is_an_error_before_anything_is_loaded(tiny_run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RegardError, match=f"cannot listen on port {port} of 127.0.0.1: "):
            serve([tiny_run / "missing"], [], "127.0.0.1", port)


@pytest.mark.parametrize("host", ["no.such.host.invalid", "a" * 70, "a..b"])
def test_unknown_or_invalid_host_is_an_error(host):
    with pytest.raises(RegardError, match=f"cannot listen on '{host}'"):
        serve([], [], host, 0)


def test_bound_port_cannot_be_bound_again():
    with bind_socket("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        message = f"cannot listen on port {port} of 127.0.0.1: "
        with pytest.raises(RegardError, match=message), bind_socket("127.0.0.1", port):
            pass


def wait_until(condition):
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def fake_server(monkeypatch):
    """Do everything but serve; return the apps and the URLs opened in a browser."""
    apps, opened = [], []

    def run(self, sockets):
        apps.append(self.config.app)
        self._on_started()

    monkeypatch.setattr(server._Server, "run", run)
    monkeypatch.setattr(server.webbrowser, "open", opened.append)
    return apps, opened


def test_host_other_than_loopback_requires_a_new_random_token(tiny_run, fake_server):
    messages, (apps, opened) = [], fake_server
    for _ in range(2):
        serve([tiny_run], [], "0.0.0.0", 0, open_page=True, echo=messages.append)
    urls = [re.search(r"(http://\S+:(\d+)/)\?token=([\w-]{32,})  ", line) for line in messages]
    tokens = [match[3] for match in urls]
    assert len(set(tokens)) == 2
    for app, match in zip(apps, urls, strict=True):
        client = TestClient(app, base_url=f"http://127.0.0.1:{match[2]}")
        assert client.get("/api/runs").status_code == 401
        bearer = {"authorization": f"Bearer {match[3]}"}
        assert client.get("/api/runs", headers=bearer).status_code == 200
    wait_until(lambda: len(opened) == 2)
    assert {url.rpartition("=")[2] for url in opened} == set(tokens)


def test_loopback_requires_no_token(tiny_run, fake_server):
    messages, (apps, opened) = [], fake_server
    serve([tiny_run], [], "127.0.0.1", 0, echo=messages.append)
    assert "token" not in messages[0] and opened == []
    url = re.search(r"http://\S+/", messages[0])[0]
    assert TestClient(apps[0], base_url=url).get("/api/runs").status_code == 200


def test_browser_that_blocks_does_not_block_the_server(tiny_run, fake_server, monkeypatch):
    close, closed = threading.Event(), []

    def open_and_block(url):
        close.wait(20)
        closed.append(url)

    monkeypatch.setattr(server.webbrowser, "open", open_and_block)
    serve([tiny_run], [], "127.0.0.1", 0, open_page=True, echo=lambda line: None)
    assert closed == []  # serve has returned while the browser is still open
    close.set()
    wait_until(lambda: closed)


def test_demo_run_is_served_without_arguments(run, fake_server, monkeypatch):
    messages, (apps, _) = [], fake_server
    monkeypatch.setattr(server, "load_or_train", lambda: run)
    serve([], [], "127.0.0.1", 0, echo=messages.append)
    assert "trained once and cached" in messages[0]
    url = re.search(r"http://\S+/", messages[1])[0]
    runs = TestClient(apps[0], base_url=url).get("/api/runs").json()["runs"]
    assert [info["name"] for info in runs] == ["tiny"]


def test_demo_run_is_not_loaded_when_a_trace_is_given(fake_server, monkeypatch, tmp_path, client):
    monkeypatch.setattr(server, "load_or_train", None)  # calling it would fail
    path = tmp_path / "trace.json"
    body = {"run": "tiny", "source": "the cat", "target": "le chat"}
    path.write_text(client.post("/api/traces", json=body).text)
    serve([], [path], "127.0.0.1", 0, echo=lambda line: None)
    assert len(fake_server[0]) == 1
