"""How large a page is, how soon it paints and how fast it follows the mouse.

Times are those that the page's own thread worked: others may be busy on the same computer.
"""

import numpy as np
import pytest

from regard.trace import AttentionMap, AttentionSummary, TokenList, Trace
from regard.viz.page import render_page

pytestmark = pytest.mark.slow

LAYERS, HEADS = 12, 12

MOVES = 40
HOVER = """async (moves) => {
    const stage = document.querySelector(".stage");
    const box = stage.getBoundingClientRect();
    for (let n = 0; n < moves; n++) {
        const [clientX, clientY] = [box.left + box.width / 3 + 5 * n, box.top + 130 + 6 * n];
        stage.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX, clientY }));
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    }
}"""


@pytest.fixture
def window(chromium):
    context = chromium.new_context(offline=True, viewport={"width": 1200, "height": 800})
    yield context.new_page()
    context.close()


class Clock:
    """Seconds that a page's thread has worked."""

    def __init__(self, window):
        self.session = window.context.new_cdp_session(window)
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def __call__(self, work):
        before = self.worked()
        work()
        return self.worked() - before

    def worked(self):
        metrics = self.session.send("Performance.getMetrics")["metrics"]
        return next(one["value"] for one in metrics if one["name"] == "TaskDuration")


def open_file(window, html, folder):
    (folder / "page.html").write_text(html, encoding="utf-8")
    window.goto((folder / "page.html").as_uri())
    window.wait_for_selector(".sentence:not(:empty)")


def causal(tokens):
    """Weights of heads that look back, somewhere or everywhere."""
    rng = np.random.default_rng(0)
    looks = []
    for layer in range(LAYERS):
        scores = rng.standard_normal((HEADS, tokens, tokens), dtype=np.float32) * 2
        scores[:, np.triu(np.ones((tokens, tokens), dtype=bool), 1)] = -np.inf
        weights = np.exp(scores)
        weights /= weights.sum(-1, keepdims=True)
        looks.append(
            AttentionMap(
                name=f"h.{layer}", kind="causal", queries="text", keys="text", weights=weights
            )
        )
    return text_of(tokens, looks)


def text_of(tokens, looks):
    words = TokenList(tuple(f"word{n % 97}" for n in range(tokens)))
    return Trace(tokens={"text": words}, maps=tuple(looks), title=f"{tokens} tokens")


def long(tokens):
    """Looks that were reduced while the model ran: whole, they would be gigabytes."""
    rng = np.random.default_rng(0)
    shares = -np.sort(-rng.dirichlet(np.full(9, 0.3), size=(HEADS, tokens)), axis=-1)
    rows = np.ones((HEADS, tokens), dtype=np.float32)
    reduced = AttentionSummary(
        top_keys=(np.arange(tokens)[:, None] + 31 * np.arange(8)) % tokens
        + np.zeros((HEADS, 1, 1), int),
        top_weights=shares[..., :8].astype(np.float32),
        remainder=shares[..., 8].astype(np.float32),
        tiles=rng.random((HEADS, 64, 64), dtype=np.float32) / tokens,
        entropy=rows,
        received=rows / tokens,
        distance=rows,
    )
    looks = [
        AttentionMap(name=f"h.{layer}", kind="self", queries="text", keys="text", summary=reduced)
        for layer in range(LAYERS)
    ]
    return text_of(tokens, looks)


def test_512_tokens_fit_into_4_mib_paint_within_a_second_and_follow_the_mouse(window, tmp_path):
    html = render_page(causal(512))
    assert len(html.encode()) <= 4 * 2**20
    clock = Clock(window)
    assert clock(lambda: open_file(window, html, tmp_path)) < 1.0
    window.wait_for_timeout(2000)  # the thumbnails are drawn meanwhile
    assert clock(lambda: window.evaluate(HOVER, MOVES)) / MOVES < 0.050
    window.keyboard.press("l")
    assert clock(lambda: window.evaluate(HOVER, MOVES)) / MOVES < 0.050


def test_2048_tokens_open_and_follow_the_mouse(window, tmp_path):
    clock = Clock(window)
    assert clock(lambda: open_file(window, render_page(long(2048)), tmp_path)) < 3.0
    window.wait_for_timeout(2000)
    assert clock(lambda: window.evaluate(HOVER, MOVES)) / MOVES < 0.050
    window.keyboard.press("ArrowDown")
    window.evaluate(HOVER, 1)
    assert " looks most at “word" in window.locator(".sentence").inner_text()
