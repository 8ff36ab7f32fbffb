import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from regard.cli import app
from regard.errors import RegardError
from regard.explorer import serve, server
from regard.web import bind_socket

pytestmark = pytest.mark.server

WAIT_SECONDS = 300  # until a test that hangs fails
BODY = json.dumps({"run": "tiny", "text": "the old cat sees the dog"}).encode()


class ServerProcess:
    """`regard explore` in a process of its own."""

    def __init__(self, *arguments, max_files=None):
        command = [sys.executable, "-m", "regard", "explore", *arguments, "--port", "0"]
        if max_files is not None:
            command = ["sh", "-c", f'ulimit -n {max_files} && exec "$@"', "sh", *command]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        match = re.search(
            r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", self.process.stdout.readline()
        )
        assert match, self.process.communicate(timeout=WAIT_SECONDS)
        self.port = int(match[1])
        self.authorization = f"Bearer {match[2]}"

    def send_request(self, body=BODY, num_bytes=None):
        """Send a request, or its first bytes, and return the connection."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=WAIT_SECONDS)
        headers = (
            f"POST /api/translate HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
            f"Authorization: {self.authorization}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        connection.sendall((headers.encode() + body)[:num_bytes])
        return connection

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_SECONDS)
        connection.request("GET", path, headers={"Authorization": self.authorization})
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


def test_slow_clients_block_no_others_and_sigterm_finishes_running_requests(server_process):
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


def test_verbose_server_prints_the_engine_and_the_reason(tiny_run):
    process = ServerProcess(str(tiny_run), "--engine", "torch", "--verbose")
    assert read_response(process.send_request())[0] == 200
    process.process.send_signal(signal.SIGTERM)
    output, _ = process.process.communicate(timeout=WAIT_SECONDS)
    assert "tiny: engine: TorchEngine(), since the engine is torch\n" in output


def test_idle_connections_beyond_the_open_files_are_closed_without_a_word(tiny_run):
    server_process = ServerProcess(str(tiny_run), max_files=128)
    partial = 40  # bytes of the headers
    try:
        busy = server_process.send_request(num_bytes=-1)  # all but the last byte of its body
        idle = [server_process.send_request(num_bytes=n % 2 * partial) for n in range(400)]
        for _ in range(3):
            assert server_process.get("/api/runs")[0] == 200
        busy.sendall(BODY[-1:])
        assert read_response(busy)[0] == 200
        for connection in idle:
            connection.close()
        assert server_process.get("/api/runs")[0] == 200
    finally:
        exit_code, errors = server_process.stop(signal.SIGTERM)
    assert (exit_code, errors) == (0, "")


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

    monkeypatch.setattr(server.HTTPServer, "run", run)
    monkeypatch.setattr(server.webbrowser, "open", opened.append)
    return apps, opened


def client_of(served, message):
    """Return a client of the app that `serve` built, not logged in, and the printed token."""
    match = re.search(r"http://\S+:(\d+)/(?:\?token=([\w-]{32,}))?  ", message)
    return TestClient(served, base_url=f"http://127.0.0.1:{match[1]}"), match[2]


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_every_host_requires_a_new_random_token(tiny_run, fake_server, host):
    messages, (apps, _) = [], fake_server
    for _ in range(2):
        serve([tiny_run], [], host, 0, echo=messages.append)
    tokens = set()
    for served, message in zip(apps, messages, strict=True):
        client, token = client_of(served, message)
        assert client.get("/api/runs").status_code == 401
        bearer = {"authorization": f"Bearer {token}"}
        assert client.get("/api/runs", headers=bearer).status_code == 200
        assert client.get("/", params={"token": token}).status_code == 200  # redirected
        assert client.get("/api/runs").status_code == 200  # by the cookie
        tokens.add(token)
    assert len(tokens) == 2


def test_browser_is_opened_with_a_link_that_logs_in_once(tiny_run, fake_server):
    messages, (apps, opened) = [], fake_server
    serve([tiny_run], [], "127.0.0.1", 0, open_page=True, echo=messages.append)
    wait_until(lambda: opened)
    client, token = client_of(apps[0], messages[0])
    assert token not in opened[0]
    assert client.get(opened[0]).status_code == 200
    assert client.get("/api/runs").status_code == 200
    other, _ = client_of(apps[0], messages[0])
    assert other.get(opened[0]).status_code == 401
    assert other.get("/api/runs").status_code == 401


def test_no_token_disables_authentication_on_loopback(tiny_run, fake_server):
    messages, (apps, opened) = [], fake_server
    options = {"needs_token": False, "open_page": True, "echo": messages.append}
    serve([tiny_run], [], "127.0.0.1", 0, **options)
    client, token = client_of(apps[0], messages[0])
    assert token is None and "token" not in messages[0]
    assert client.get("/api/runs").status_code == 200
    wait_until(lambda: opened)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", opened[0])


def test_no_token_is_refused_for_an_address_that_other_machines_reach(tiny_run):
    command = ["explore", str(tiny_run), "--host", "0.0.0.0", "--port", "0", "--no-token"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1
    assert result.stderr == (
        "regard: --host 0.0.0.0 needs a token, since other machines can reach it; "
        "only localhost can do without\n"
    )


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


def test_explore_command_serves_two_runs(tiny_run, run_copy, fake_server):
    result = CliRunner().invoke(app, ["explore", str(tiny_run), str(run_copy), "--port", "0"])
    assert result.exit_code == 0, result.output
    client, token = client_of(fake_server[0][0], result.stdout)
    bearer = {"authorization": f"Bearer {token}"}
    runs = client.get("/api/runs", headers=bearer).json()["runs"]
    assert [info["name"] for info in runs] == [tiny_run.name, run_copy.name]


def test_shipped_model_is_served_without_arguments(fake_server):
    messages, (apps, _) = [], fake_server
    serve([], [], "127.0.0.1", 0, echo=messages.append)
    assert "the English-French model that the package ships" in messages[0]
    client, token = client_of(apps[0], messages[1])
    bearer = {"authorization": f"Bearer {token}"}
    runs = client.get("/api/runs", headers=bearer).json()["runs"]
    assert [info["name"] for info in runs] == ["demo-model"]


def test_shipped_model_is_not_served_when_a_trace_is_given(
    fake_server, monkeypatch, tmp_path, client
):
    monkeypatch.setattr(server, "find_run", None)  # calling it would fail
    path = tmp_path / "trace.json"
    body = {"run": "tiny", "source": "the cat", "target": "le chat"}
    path.write_text(client.post("/api/traces", json=body).text)
    serve([], [path], "127.0.0.1", 0, echo=lambda line: None)
    assert len(fake_server[0]) == 1
