import re

import pytest
import torch

from regard.demo.five_words import NEXT, five_words
from regard.errors import RegardError


@pytest.fixture
def told(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    lines = []
    five_words(tmp_path / "five.png", lines.append)
    return "\n".join(lines)


def row(word, text, after):
    """The numbers of the first row of that word after some heading."""
    line = re.search(rf"^ *{word} +\d.*$", text[text.index(after) :], re.MULTILINE).group()
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", line)]


def test_the_demo_tells_scores_weights_and_context_of_the_first_word(told):
    weights = torch.tensor([1, 0, 0.5, 0.5, 0.75]).softmax(-1)
    assert row("kitten", told, "1. Score") == [1, 0, 0.5, 0.5, 0.75]
    assert row("kitten", told, "2. Weigh") == pytest.approx(weights.tolist(), abs=0.005)
    kitten, train, horse, _, cat = weights.tolist()
    alive, moves = kitten + horse + cat, train + horse + cat / 2
    assert row("kitten", told, "3. Gather")[:2] == pytest.approx([alive, moves], abs=0.005)


def test_the_parts_that_make_the_kitten_move_are_those_told(told):
    total, horse, cat, train = map(
        float, re.findall(r"\d\.\d\d", told[told.index("now moves") : told.index("the train")])
    )
    assert (horse, cat, train) == (0.18, 0.12, 0.11)
    assert total == pytest.approx(horse + cat + train)


def test_the_heat_map_shows_the_known_weights(told):
    assert row("kitten", told, "Where each word looks") == [0.30, 0.11, 0.18, 0.18, 0.23]
    assert row("train", told, "Where each word looks") == [0.12, 0.33, 0.20, 0.20, 0.15]
    assert "train   looks most at train (0.33)" in told


def test_with_the_causal_mask_no_word_looks_ahead(told):
    assert row("kitten", told, "looking back only") == [1, 0, 0, 0, 0]
    assert row("horse", told, "looking back only")[3:] == [0, 0]


def test_the_demo_saves_its_picture_and_says_where(told, tmp_path):
    assert (tmp_path / "five.png").read_bytes().startswith(b"\x89PNG")
    assert f"picture: {tmp_path / 'five.png'}" in told


def test_the_demo_fits_a_terminal_of_eighty_columns(told):
    lines = [line for line in told.splitlines() if "five.png" not in line]
    assert max(map(len, lines)) <= 80


def test_what_to_try_next_works(capsys, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    lines = [line[4:] for line in NEXT.splitlines() if line.startswith("    ")]
    exec("\n".join(lines), {})
    shown = capsys.readouterr().out
    assert row("one", shown, "one")[2:] == [0, 0, 0]  # its window reaches one word


def test_a_picture_that_cannot_be_written_is_said_after_the_text(tmp_path):
    lines = []
    with pytest.raises(RegardError, match="cannot write"):
        five_words(tmp_path / "nowhere" / "five.png", lines.append)
    assert "looks most at" in "\n".join(lines)
