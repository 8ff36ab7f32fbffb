"""One small run, trained once, and the app that shows it."""

import faulthandler
import re
import shutil
import socket
import sys
import threading
from contextlib import contextmanager

import jaxtyping
import pytest
import uvicorn
from starlette.testclient import TestClient

from helpers.tiny_corpus import SMALL, corpus
from regard.config import parse_assignment
from regard.data import phrasebook
from regard.demo import models
from regard.explorer import gold_alignments
from regard.explorer.app import create_app
from regard.explorer.middleware import Address, Door
from regard.explorer.runs import Shelf
from regard.explorer.server import _config
from regard.explorer.traces import Saved
from regard.explorer.workers import Line
from regard.runs import load
from regard.training import train

PORT = 8765
SERVER_ENDS = 120  # seconds, on a busy machine, too
SOURCE, TARGET = "the old cat sees the dog", "le chat vieux voit le chien"


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """The folder of a run that has learned a little; read it, and leave it as it is."""
    path = tmp_path_factory.mktemp("explorer") / "small"
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        named = corpus("phrasebook fr", models.dataset("fr"))
        updates = [
            *SMALL,
            parse_assignment("train.snapshots=true"),
            parse_assignment("train.steps=60"),
        ]
        train(named, path, updates=updates, echo=lambda line: None)
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)
    return path


@pytest.fixture(scope="session")
def run(trained):
    return load(trained)


@pytest.fixture(scope="session")
def few():
    """A short phrasebook for each language."""
    return {to: phrasebook.load_phrasebook(to, train=6, valid=3, test=3) for to in ("fr", "zh")}


@pytest.fixture(autouse=True)
def book(few, monkeypatch):
    """Let the explorer read the short phrasebook, as it would the long one."""
    gold_alignments._phrases.cache_clear()
    monkeypatch.setattr(gold_alignments, "load_phrasebook", few.__getitem__)
    yield few
    gold_alignments._phrases.cache_clear()


@pytest.fixture
def copied(trained, tmp_path):
    """A copy of the run that a test may spoil."""
    return shutil.copytree(trained, tmp_path / "copy")


@pytest.fixture
def line():
    line = Line(workers=2)
    yield line
    line.close()


@pytest.fixture
def visit(line):
    """Open the app on some runs and traces, as a browser on the same machine would."""

    def enter(*runs, traces=(), token=None, **options):
        app = create_app(Shelf(runs), Saved(traces), line)
        door = Door(app, Address("127.0.0.1", PORT), token, **options)
        return TestClient(
            door,
            base_url=f"http://127.0.0.1:{PORT}",
            raise_server_exceptions=False,
            follow_redirects=False,
        )

    return enter


@pytest.fixture
def client(visit, trained):
    return visit(trained)


def refusal(response, status):
    """Expect a refusal, and give its sentence."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    told = response.json()
    assert list(told) == ["error"] and told["error"].endswith(".")
    assert "Traceback" not in told["error"] and "\n" not in told["error"]
    return told["error"]


@pytest.fixture
def refused():
    return refusal


@contextmanager
def serving(runs, traces=()):
    """A real server of the app, on a port of its own; gives its address."""
    line = Line(workers=2)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()  # who comes before the thread has begun waits, and is not refused
        port = listener.getsockname()[1]
        app = create_app(Shelf(runs), Saved(traces), line)
        door = Door(app, Address("127.0.0.1", port), None)
        server = uvicorn.Server(_config(door))
        options = {"kwargs": {"sockets": [listener]}, "daemon": True}
        thread = threading.Thread(target=server.run, **options)
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}/"
        finally:
            server.should_exit = True
            thread.join(SERVER_ENDS)
            if thread.is_alive():
                faulthandler.dump_traceback(sys.__stderr__)
                pytest.fail(f"the server did not end within {SERVER_ENDS} seconds")
            line.close()


@pytest.fixture(scope="session")
def plain(trained, tmp_path_factory):
    """The same run as if it had not learned from the phrasebook, which takes long to write out."""
    path = shutil.copytree(trained, tmp_path_factory.mktemp("plain") / "small")
    settings = (path / "settings.json").read_text("utf-8")
    (path / "settings.json").write_text(
        settings.replace('"name": "phrasebook"', '"name": "small"'), "utf-8"
    )
    return path


@pytest.fixture(scope="session")
def site(plain):
    """The explorer of one run under two names."""
    with serving([plain, plain]) as url:
        yield url


@pytest.fixture
def served():
    """Start a server of other runs and traces."""
    return serving


@pytest.fixture
def browse(chromium):
    """Open an address in a new browser that reaches nothing else; it has `asked` and `errors`."""
    contexts = []

    def enter(url, **options):
        home = re.match(r"https?://[^/]+/", url)[0]
        options = {"locale": "en-US", "viewport": {"width": 1200, "height": 900}} | options
        context = chromium.new_context(**options)
        contexts.append(context)
        window = context.new_page()
        window.asked, window.errors = [], []
        window.on("request", lambda request: window.asked.append(request.url))
        window.on("pageerror", lambda error: window.errors.append(str(error)))
        window.on("console", lambda said: said.type == "error" and window.errors.append(said.text))
        context.route(lambda asked: not asked.startswith(home), lambda route: route.abort())
        window.goto(url)
        return window

    yield enter
    for context in contexts:
        context.close()
