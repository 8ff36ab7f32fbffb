"""25,000 random requests to an explorer on loopback: no internal error, no traceback, no token."""

import re
import signal
import socket
import subprocess
import sys
from random import Random
from urllib.parse import parse_qs, urlsplit

import pytest

from helpers.hostile_requests import draw_request

pytestmark = [pytest.mark.slow, pytest.mark.server]

REQUESTS, PARTS = 25_000, 25
WAIT_SECONDS = 60
ANSWER_SECONDS = (0.01, 0.05, 0.5)  # then the client leaves


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Return host and token of an explorer; check at the end that it wrote no errors."""
    errors = tmp_path_factory.mktemp("explorer") / "stderr"
    command = [sys.executable, "-m", "regard", "explore", "demo-model", "--port", "0"]
    with (
        errors.open("w") as stderr,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True) as process,
    ):
        url = urlsplit(re.search(r"http://\S+", process.stdout.readline())[0])
        yield url.netloc, parse_qs(url.query)["token"][0]
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_SECONDS) == 0
    assert "Traceback" not in errors.read_text()


def send(random, host, request):
    """Send a request, and return what was answered until the client leaves."""
    name, _, port = host.rpartition(":")
    received = b""
    try:
        with socket.create_connection((name, int(port)), WAIT_SECONDS) as connection:
            connection.sendall(request)
            if random.random() < 0.5:
                connection.shutdown(socket.SHUT_WR)
            connection.settimeout(random.choice(ANSWER_SECONDS))
            while (chunk := connection.recv(1 << 16)) and not is_complete(received + chunk):
                received += chunk
            return received + chunk
    except OSError:  # reset by the server, or the client leaves
        return received


def is_complete(received):
    head, _, body = received.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    return bool(length) and len(body) >= int(length[1])


def find_problem(answer, token):
    """Return what is wrong with an answer, or nothing."""
    status = re.match(rb"HTTP/1\.1 (\d+) ", answer)
    if answer and not status:
        return "no HTTP"
    code = int(status[1]) if status else 0
    if code >= 500 and not (code == 503 and b"retry-after: " in answer):
        return f"status {code}"
    return "the token is shown" if token.encode() in answer else ""


@pytest.mark.parametrize("part", range(PARTS))
def test_hostile_requests_are_answered_without_errors(part, server):
    host, token = server
    problems = []
    for seed in range(part * REQUESTS // PARTS, (part + 1) * REQUESTS // PARTS):
        random = Random(seed)
        request = draw_request(random, host, token)
        answer = send(random, host, request)
        if problem := find_problem(answer, token):
            problems.append((seed, problem, request[:200], answer[:200]))
    assert not problems
    assert send(Random(1), host, f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
