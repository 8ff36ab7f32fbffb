import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from regard.trace import load_trace

FIXTURE = Path(__file__).parents[1] / "fixtures" / "trace.json"


@pytest.fixture
def trace():
    """The trace that the page's own tests read too."""
    return load_trace(FIXTURE)


@pytest.fixture
def displayed(monkeypatch):
    """Pretend to be the kernel of a notebook; return what was displayed."""
    with suppress(ImportError):
        import anywidget  # noqa: F401  it needs the real IPython
    objects = []
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=objects.append))
    return objects


@pytest.fixture
def open_page(chromium, tmp_path):
    """Open HTML in a browser window without network; it records `requests` and `errors`."""
    contexts = []

    def open_html(html, **options):
        file = tmp_path / f"page{len(contexts)}.html"
        file.write_text(html, encoding="utf-8")
        options = {"locale": "en-US", "viewport": {"width": 1200, "height": 800}} | options
        contexts.append(chromium.new_context(offline=True, **options))
        window = contexts[-1].new_page()
        window.requests, window.errors = [], []
        window.on("request", lambda request: window.requests.append(request.url))
        window.on("pageerror", lambda error: window.errors.append(str(error)))
        window.goto(file.as_uri())
        window.wait_for_selector(".description:not(:empty)")
        return window

    yield open_html
    for context in contexts:
        context.close()
