import re
import sys
from pathlib import Path

import pytest

from regard.data.phrasebook import load_phrasebook
from regard.demo.showcase import choose_head, run_demo
from regard.errors import RegardError
from regard.runs import load

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.mark.parametrize(("to", "model"), [("fr", "transformer"), ("zh", "bahdanau")])
def test_the_demo_trains_translates_and_shows_where_it_looked(to, model, tmp_path, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    book = load_phrasebook(to, train=300, valid=20, test=20)
    for module in ("showcase", "models"):
        monkeypatch.setattr(f"regard.demo.{module}.load_phrasebook", lambda _: book)
    out, told = tmp_path / "run", []
    run_demo(out, to=to, model=model, minutes=0.03, say=told.append)
    text = "\n".join(told)
    assert "20 sentences it never saw: BLEU" in text
    assert "where it looks" in text and "The gold alignment" in text
    assert f"regard translate {out}" in text
    saved = Path(re.search(r"The picture: (.*)", text)[1])
    assert saved.read_bytes().startswith((b"\x89PNG", b"<?xml"))
    assert saved.suffix == ".png" or to == "zh"
    assert load(out).settings.model.kind == ("recurrent" if model == "bahdanau" else "transformer")
    head = choose_head(load(out), book.valid[:3])
    assert 0.0 <= head.value <= 1.0


def test_without_matplotlib_the_demo_shows_its_maps_and_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    book = load_phrasebook("fr", train=300, valid=20, test=20)
    for module in ("showcase", "models"):
        monkeypatch.setattr(f"regard.demo.{module}.load_phrasebook", lambda _: book)
    told = []
    run_demo(tmp_path / "run", minutes=0.02, say=told.append)
    maps, picture, rest = told[-3:]
    assert "where it looks" in maps and "The gold alignment" in maps
    assert re.match(r"No picture was saved: .*pip install 'regard\[pictures\]' would do\n", picture)
    assert "To try next" in rest
    assert not list((tmp_path / "run").glob("attention.*"))


def test_another_language_or_model_is_refused_before_anything_is_done(tmp_path):
    with pytest.raises(RegardError, match="no language of the phrasebook is called 'de'"):
        run_demo(tmp_path / "run", to="de")
    with pytest.raises(RegardError, match="no model of the demo is called 'lstm'"):
        run_demo(tmp_path / "run", model="lstm")
    with pytest.raises(RegardError, match="a blind model looks nowhere"):
        run_demo(tmp_path / "run", model="no_attention")
    assert not (tmp_path / "run").exists()
