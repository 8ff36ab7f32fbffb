"""Clients, servers and browser pages of the explorer."""

import re
import shutil

import pytest
from starlette.testclient import TestClient

from helpers.explorer import serve_in_thread
from regard.data import phrasebook
from regard.explorer import (
    RequestPool,
    RunRegistry,
    ServerAddress,
    TraceRegistry,
    create_app,
    secure_app,
    traces,
)
from regard.runs import RunFolder, load

PORT = 8765


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="session")
def run(tiny_run):
    return load(tiny_run)


@pytest.fixture(scope="session")
def small_phrasebooks():
    """A phrasebook of a few pairs for each language."""
    return {to: phrasebook.load_phrasebook(to, train=6, valid=3, test=3) for to in ("fr", "zh")}


@pytest.fixture(autouse=True)
def phrasebooks(small_phrasebooks, monkeypatch):
    """Let the explorer read the small phrasebooks, since the full ones take a second each."""
    traces._pairs_by_text.cache_clear()
    monkeypatch.setattr(traces, "load_phrasebook", small_phrasebooks.__getitem__)
    yield small_phrasebooks
    traces._pairs_by_text.cache_clear()


@pytest.fixture
def run_copy(tiny_run, tmp_path):
    """A copy of the run that a test may modify."""
    return shutil.copytree(tiny_run, tmp_path / "copy")


@pytest.fixture
def make_client():
    """Return a function that builds a client of the app, like a browser on the same machine."""

    def make(*runs, traces=(), token=None, **options):
        app = create_app(RunRegistry(runs), TraceRegistry(traces), RequestPool(workers=2))
        return TestClient(
            secure_app(app, ServerAddress("127.0.0.1", PORT), token, **options),
            base_url=f"http://127.0.0.1:{PORT}",
            raise_server_exceptions=False,
            follow_redirects=False,
        )

    return make


@pytest.fixture
def client(make_client, tiny_run):
    return make_client(tiny_run)


@pytest.fixture(scope="session")
def run_without_phrasebook(tiny_run, tmp_path_factory):
    """The run as if trained on other data: the page starts without an example sentence."""
    path = shutil.copytree(tiny_run, tmp_path_factory.mktemp("other_data") / "tiny")
    folder = RunFolder(path)
    settings, origin = folder.read_settings()
    folder.write_settings(settings, {**origin, "dataset": {"name": "other"}}, folder.read_id())
    return path


@pytest.fixture(scope="session")
def explorer_url(run_without_phrasebook):
    """URL of an explorer with one run under two names."""
    with serve_in_thread([run_without_phrasebook, run_without_phrasebook]) as url:
        yield url


@pytest.fixture
def serve_explorer():
    """Return a context manager that serves other runs and traces."""
    return serve_in_thread


@pytest.fixture
def open_page(chromium):
    """Return a function that opens a URL in a new browser context without other network access.

    The page has two more attributes: `requests`, the requested URLs, and `errors`.
    """
    contexts = []

    def open_url(url, **options):
        origin = re.match(r"https?://[^/]+/", url)[0]
        options = {"locale": "en-US", "viewport": {"width": 1200, "height": 900}} | options
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.requests, page.errors = [], []
        page.on("request", lambda request: page.requests.append(request.url))
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.on("console", lambda entry: entry.type == "error" and page.errors.append(entry.text))
        context.route(lambda target: not target.startswith(origin), lambda route: route.abort())
        page.goto(url)
        return page

    yield open_url
    for context in contexts:
        context.close()
