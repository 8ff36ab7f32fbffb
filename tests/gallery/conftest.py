"""Translators of a second's training, in place of those that the gallery keeps."""

import jaxtyping
import pytest

from regard.data import Corpus
from regard.data.phrasebook import load_phrasebook
from regard.demo import MODELS
from regard.runs import load
from regard.training import train

TRAINED = {"translators", "speller"}  # fixtures that train for seconds


@pytest.hookimpl(tryfirst=True)  # before tests are selected by their markers
def pytest_collection_modifyitems(items):
    """Mark the tests of figures that are drawn from trained models."""
    for item in items:
        if not TRAINED.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.train)


SMALL = {
    "data": {"vocab_size": 500},
    "model": {"width": 16, "heads": 2, "ffn_width": 24},
    "train": {
        "steps": 30,
        "batch_tokens": 256,
        "warmup": 5,
        "learning_rate": 1e-2,
        "snapshots": True,
    },
}


@pytest.fixture(scope="session")
def translators(tmp_path_factory):
    """Give the three models of the lesson by name, small and barely trained."""
    book = load_phrasebook("fr", train=150, valid=20, test=20)
    texts = [
        Corpus.from_pairs(name, [pair.to_pair() for pair in getattr(book, name)])
        for name in ("train", "valid")
    ]
    runs = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jaxtyping.config, "jaxtyping_disable", True)
        for name, settings in MODELS.items():
            out = tmp_path_factory.mktemp("runs") / name
            train(texts[0], out, valid=texts[1], settings=[{"model": settings["model"]}, SMALL])
            runs[name] = load(out)
    return runs


@pytest.fixture
def small_transformer(translators, monkeypatch):
    """Let the figures use the small Transformer, evaluated on a few phrases."""
    for figure in ("cross_attention", "self_attention", "three_attentions", "while_learning"):
        monkeypatch.setattr(
            f"regard.gallery.{figure}.load_or_train", lambda **_: translators["transformer"]
        )
        monkeypatch.setattr(f"regard.gallery.{figure}.EVALUATED", 4, raising=False)
    return translators["transformer"]
