from pathlib import Path

import pytest

from regard.trace import load_trace

FIXTURE = Path(__file__).parents[1] / "fixtures" / "trace.json"


@pytest.fixture
def trace():
    """The trace that the page's own tests read too."""
    return load_trace(FIXTURE)


@pytest.fixture
def opened(chromium, tmp_path):
    """Open a page in a window without network; `asked` lists what it tried to fetch."""
    contexts = []

    def open_page(html, **options):
        file = tmp_path / f"page{len(contexts)}.html"
        file.write_text(html, encoding="utf-8")
        options = {"locale": "en-US", "viewport": {"width": 1200, "height": 800}} | options
        contexts.append(chromium.new_context(offline=True, **options))
        window = contexts[-1].new_page()
        window.asked, window.errors = [], []
        window.on("request", lambda request: window.asked.append(request.url))
        window.on("pageerror", lambda error: window.errors.append(str(error)))
        window.goto(file.as_uri())
        window.wait_for_selector(".sentence:not(:empty)")
        return window

    yield open_page
    for context in contexts:
        context.close()
