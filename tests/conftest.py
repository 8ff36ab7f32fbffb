"""Settings that every test needs before torch is imported, and shared fixtures."""

import os
import shutil

# on hosts that report AMX but forbid it, bfloat16 products crash without this
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


def pytest_collection_modifyitems(items):
    """Run browser tests last: Playwright keeps an event loop running, which async tests refuse."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)


@pytest.fixture
def unchecked(monkeypatch):
    """Disable runtime type checks, so that a test meets the messages a user meets."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture(autouse=True)
def fixed_seed():
    torch.manual_seed(0)


@pytest.fixture(
    params=[{}, {"kind": "recurrent", "score": "additive"}], ids=["transformer", "recurrent"]
)
def tiny_model(request):
    """An untrained model of 9 tokens with peaked predictions, and a batch of three sources."""
    from regard.config import ModelConfig
    from regard.models import build

    settings = ModelConfig(width=12, layers=1, heads=3, ffn_width=8, **request.param)
    model = build(settings, 9).eval()
    for parameter in model.parameters():
        parameter.data *= 2
    source = torch.randint(4, 9, (3, 6))
    return model, source, torch.tensor([6, 2, 4])


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory):
    """Folder of a small trained run of the phrasebook's data set; do not modify it."""
    from helpers.tiny_corpus import TINY, tiny_corpus
    from regard.demo import models
    from regard.training import train

    path = tmp_path_factory.mktemp("session") / "tiny"
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        updates = [TINY, {"train": {"snapshots": True, "steps": 60}}]
        named = tiny_corpus("phrasebook fr", models.dataset_id("fr"))
        train(named, path, settings=updates, echo=lambda line: None)
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)
    return path


@pytest.fixture(scope="session")
def chromium():
    """Launch Chromium; skip the test where it is not installed."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=path,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield browser
        browser.close()
