"""Settings that every test needs before torch starts."""

import os
import shutil
import signal
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

# on hosts that announce AMX but forbid it, bfloat16 products die without this
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
# compiled kernels are cached per user; a fresh clone must not depend on an old cache
os.environ.setdefault("TORCHINDUCTOR_FX_GRAPH_CACHE", "1")

import jaxtyping
import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)  # the tests themselves run in parallel

settings.register_profile("regard", deadline=None, max_examples=60, print_blob=True)
settings.load_profile("regard")


@pytest.fixture
def unchecked(monkeypatch):
    """Switch the checking of annotations off, to meet the messages that a user meets."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture(autouse=True)
def same_numbers_every_time():
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def chromium():
    """A real browser; tests that need one are skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("Chromium is not installed")
    before = children()
    started = playwright.sync_playwright().start()
    driver = children() - before
    browser = started.chromium.launch(
        executable_path=path,
        args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
    )
    yield browser
    with killed_after(BROWSER_ENDS, driver), suppress(playwright.Error):
        browser.close()
    with killed_after(BROWSER_ENDS, driver):
        started.stop()


BROWSER_ENDS = 30  # seconds in which a browser should have closed


def children():
    """The processes that this one has started, where the system tells."""
    found = set()
    for listed in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # a thread that has ended since
            found |= {int(each) for each in listed.read_text("ascii").split()}
    return found


@contextmanager
def killed_after(seconds, processes):
    """Kill processes that take longer to end: nobody should wait for ever for a browser."""

    def kill():
        for each in processes & children():
            os.kill(each, signal.SIGKILL)

    timer = threading.Timer(seconds, kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
