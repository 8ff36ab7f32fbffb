import re
import sys
from pathlib import Path

import pytest

from regard import RegardError
from regard.data.phrasebook import load_phrasebook
from regard.demo import choose_head, run_demo
from regard.runs import load

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture
def small_phrasebook(monkeypatch):
    """Let the demo use a small phrasebook; return it."""
    monkeypatch.setenv("NO_COLOR", "1")

    def load_small(to):
        book = load_phrasebook(to, train=300, valid=20, test=20)
        for module in ("showcase", "models"):
            monkeypatch.setattr(f"regard.demo.{module}.load_phrasebook", lambda _: book)
        return book

    return load_small


@pytest.mark.train
@pytest.mark.parametrize(("to", "model"), [("fr", "transformer"), ("zh", "bahdanau")])
def test_demo_trains_evaluates_and_shows_attention(to, model, tmp_path, small_phrasebook):
    book = small_phrasebook(to)
    out, printed = tmp_path / "run", []
    run_demo(out, to=to, model=model, minutes=0.03, echo=printed.append)
    text = "\n".join(printed)
    assert re.search(r"Test set of 20 unseen sentences: BLEU \d+\.\d, exact match \d+ %\.", text)
    assert "Attention of layer" in text and "Gold alignment" in text
    assert f"regard translate {out}" in text
    saved = Path(re.search(r"Wrote (.*)", text)[1])
    assert saved.read_bytes().startswith((b"\x89PNG", b"<?xml"))
    assert saved.suffix == ".png" or to == "zh"
    assert load(out).settings.model.kind == ("recurrent" if model == "bahdanau" else "transformer")
    head = choose_head(load(out), book.valid[:3])
    assert 0.0 <= head.value <= 1.0


@pytest.mark.train
def test_demo_without_matplotlib_shows_maps_and_names_the_extra(
    tmp_path, monkeypatch, small_phrasebook
):
    small_phrasebook("fr")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    printed = []
    run_demo(tmp_path / "run", minutes=0.02, echo=printed.append)
    maps, picture, next_steps = printed[-3:]
    assert "Attention of layer" in maps and "Gold alignment" in maps
    assert re.match(r"No picture was saved: .*pip install 'regard\[pictures\]'\n", picture)
    assert next_steps.startswith("Next:")
    assert not list((tmp_path / "run").glob("attention.*"))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"to": "de"}, "no language of the phrasebook is called 'de'"),
        ({"model": "lstm"}, "no model of the demo is called 'lstm'"),
        ({"model": "no_attention"}, "model must have attention to show, but 'no_attention'"),
    ],
)
def test_invalid_choice_is_refused_before_anything_is_written(tmp_path, arguments, message):
    with pytest.raises(RegardError, match=message):
        run_demo(tmp_path / "run", **arguments)
    assert not (tmp_path / "run").exists()
