"""Size of the one-file page, time to first paint, and time per pointer move.

Times are CPU times of the page's main thread, so that other load on the machine does not count.
"""

import numpy as np
import pytest

from regard.trace import AttentionMap, AttentionSummary, TokenList, Trace
from regard.viz.page import render_page

pytestmark = [pytest.mark.slow, pytest.mark.browser]

LAYERS, HEADS = 12, 12
MAX_PAGE_BYTES = 4 * 2**20
MAX_SECONDS_PER_MOVE = 0.050

MOVES = 40
HOVER = """async (moves) => {
    const canvas = document.querySelector(".main-canvas");
    const box = canvas.getBoundingClientRect();
    for (let n = 0; n < moves; n++) {
        const [clientX, clientY] = [box.left + box.width / 3 + 5 * n, box.top + 130 + 6 * n];
        canvas.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX, clientY }));
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    }
}"""


@pytest.fixture
def window(chromium):
    context = chromium.new_context(offline=True, viewport={"width": 1200, "height": 800})
    yield context.new_page()
    context.close()


class TaskTimer:
    """CPU seconds of a page's main thread."""

    def __init__(self, window):
        self.session = window.context.new_cdp_session(window)
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def __call__(self, task):
        before = self.task_seconds()
        task()
        return self.task_seconds() - before

    def task_seconds(self):
        metrics = self.session.send("Performance.getMetrics")["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


def open_file(window, html, folder):
    (folder / "page.html").write_text(html, encoding="utf-8")
    window.goto((folder / "page.html").as_uri())
    window.wait_for_selector(".description:not(:empty)")


def text_trace(tokens, maps):
    words = TokenList(tuple(f"word{n % 97}" for n in range(tokens)))
    return Trace(tokens={"text": words}, maps=tuple(maps), title=f"{tokens} tokens")


def causal_trace(tokens):
    """Return a trace with all weights of causal heads."""
    rng = np.random.default_rng(0)
    maps = []
    for layer in range(LAYERS):
        scores = rng.standard_normal((HEADS, tokens, tokens), dtype=np.float32) * 2
        scores[:, np.triu(np.ones((tokens, tokens), dtype=bool), 1)] = -np.inf
        weights = np.exp(scores)
        weights /= weights.sum(-1, keepdims=True)
        name = f"h.{layer}"
        maps.append(
            AttentionMap(name=name, kind="causal", queries="text", keys="text", weights=weights)
        )
    return text_trace(tokens, maps)


def summarised_trace(tokens):
    """Return a trace with summaries only: all weights would take gigabytes."""
    rng = np.random.default_rng(0)
    shares = -np.sort(-rng.dirichlet(np.full(9, 0.3), size=(HEADS, tokens)), axis=-1)
    rows = np.ones((HEADS, tokens), dtype=np.float32)
    summary = AttentionSummary(
        top_keys=(np.arange(tokens)[:, None] + 31 * np.arange(8)) % tokens
        + np.zeros((HEADS, 1, 1), int),
        top_weights=shares[..., :8].astype(np.float32),
        remainder=shares[..., 8].astype(np.float32),
        tiles=rng.random((HEADS, 64, 64), dtype=np.float32) / tokens,
        entropy=rows,
        received=rows / tokens,
        distance=rows,
    )
    maps = [
        AttentionMap(name=f"h.{layer}", kind="self", queries="text", keys="text", summary=summary)
        for layer in range(LAYERS)
    ]
    return text_trace(tokens, maps)


def test_512_tokens_fit_into_4_mib_paint_in_1_s_and_follow_the_pointer(window, tmp_path):
    html = render_page(causal_trace(512))
    assert len(html.encode()) <= MAX_PAGE_BYTES
    timer = TaskTimer(window)
    assert timer(lambda: open_file(window, html, tmp_path)) < 1.0
    window.wait_for_timeout(2000)  # thumbnails are drawn in the background
    assert timer(lambda: window.evaluate(HOVER, MOVES)) / MOVES < MAX_SECONDS_PER_MOVE
    window.keyboard.press("l")
    assert timer(lambda: window.evaluate(HOVER, MOVES)) / MOVES < MAX_SECONDS_PER_MOVE


def test_2048_tokens_open_in_3_s_and_follow_the_pointer(window, tmp_path):
    timer = TaskTimer(window)
    assert timer(lambda: open_file(window, render_page(summarised_trace(2048)), tmp_path)) < 3.0
    window.wait_for_timeout(2000)
    assert timer(lambda: window.evaluate(HOVER, MOVES)) / MOVES < MAX_SECONDS_PER_MOVE
    window.keyboard.press("ArrowDown")
    window.evaluate(HOVER, 1)
    assert " attends most to “word" in window.locator(".description").inner_text()
