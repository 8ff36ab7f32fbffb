import re

import pytest
import torch

from regard import RegardError
from regard.demo import five_words, run_five_words


@pytest.fixture
def output(tmp_path, monkeypatch):
    """What `run_five_words` prints in a terminal of 80 columns without colours."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    lines = []
    run_five_words(tmp_path / "five.png", lines.append)
    return "\n".join(lines)


def row(word, text, heading):
    """Return the numbers of the first row of a word after a heading."""
    line = re.search(rf"^ *{word} +\d.*$", text[text.index(heading) :], re.MULTILINE).group()
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", line)]


def test_scores_weights_and_context_of_the_first_word_are_right(output):
    weights = torch.tensor([1, 0, 0.5, 0.5, 0.75]).softmax(-1)
    assert row("kitten", output, "1. Score") == [1, 0, 0.5, 0.5, 0.75]
    assert row("kitten", output, "2. Softmax") == pytest.approx(weights.tolist(), abs=0.005)
    kitten, train, horse, _, cat = weights.tolist()
    alive, moves = kitten + horse + cat, train + horse + cat / 2
    context = row("kitten", output, "3. Weighted sum")
    assert context[:2] == pytest.approx([alive, moves], abs=0.005)


def test_contributions_to_a_feature_of_the_context_add_up(output):
    sentence = output[output.index("now has") : output.index("the train")]
    total, horse, cat, train = map(float, re.findall(r"\d\.\d\d", sentence))
    assert (horse, cat, train) == (0.18, 0.12, 0.11)
    assert total == pytest.approx(horse + cat + train)


def test_heat_map_shows_the_weights(output):
    assert row("kitten", output, "Attention weights") == [0.30, 0.11, 0.18, 0.18, 0.23]
    assert row("train", output, "Attention weights") == [0.12, 0.33, 0.20, 0.20, 0.15]
    assert "train   attends most to train (0.33)" in output


def test_causal_mask_hides_following_words(output):
    assert row("kitten", output, "with a causal mask") == [1, 0, 0, 0, 0]
    assert row("horse", output, "with a causal mask")[3:] == [0, 0]


def test_picture_is_saved_and_named(output, tmp_path):
    assert (tmp_path / "five.png").read_bytes().startswith(b"\x89PNG")
    assert f"Wrote the first heat map to {tmp_path / 'five.png'}" in output


def test_output_fits_eighty_columns(output):
    lines = [line for line in output.splitlines() if "five.png" not in line]
    assert max(map(len, lines)) <= 80


def test_code_of_the_next_steps_runs(capsys, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    lines = [x[4:] for x in five_words.NEXT_STEPS.splitlines() if x.startswith("    ")]
    exec("\n".join(lines), {})
    shown = capsys.readouterr().out
    assert row("one", shown, "one")[2:] == [0, 0, 0]  # its window reaches one word


def test_picture_that_cannot_be_written_is_reported_after_the_text(tmp_path):
    lines = []
    with pytest.raises(RegardError, match="cannot write"):
        run_five_words(tmp_path / "nowhere" / "five.png", lines.append)
    assert "attends most to" in "\n".join(lines)
