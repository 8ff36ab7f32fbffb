import pytest

from regard.config import RunConfig
from regard.runs import RunFolder
from regard.training import TrainState, ValidationResult
from regard.training.checkpoint_averaging import SelectedParameters
from regard.training.model_card import model_card


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder(tmp_path / "my-run")
    folder.write_settings(RunConfig(), {"texts": ["a.tsv"], "fingerprints": ["f"], "pairs": 1234})
    return folder


def write_card(folder, translations, references):
    state = TrainState(step=99, seconds=600.0, stop_reason="the last step was reached")
    selection = SelectedParameters("step 9", ValidationResult(1.5))
    return model_card(folder, state, selection, translations, references)


def test_card_has_data_training_and_metrics(folder):
    translations = ["le chat dort bien ici", "un | chien <b>"]
    card = write_card(folder, translations, ["le chat dort bien ici", "x"])
    assert card.startswith("# my-run\n")
    assert "a.tsv (1,234 pairs)" in card
    assert "99 steps, 10 min; the last step was reached" in card and "| step 9 |" in card
    assert "perplexity 4.48" in card and "exact match | 50.0%" in card
    assert f'regard translate {folder.path} "a sentence"' in card


def test_markup_in_translations_is_escaped(folder):
    translations = ["<script>|*bold*"]
    card = write_card(folder, translations, translations)
    assert " on 1 pair |" in card
    assert "| \\<script\\>\\|\\*bold\\* |" in card


def test_markup_and_spaces_in_names_are_escaped(tmp_path):
    folder = RunFolder(tmp_path / "a <b>|*run*\n# x")
    origin = {"texts": ["<script>.tsv"], "fingerprints": ["f"], "pairs": 2}
    folder.write_settings(RunConfig(), origin)
    card = write_card(folder, ["a"], ["b"])
    assert card.startswith("# a \\<b\\>\\|\\*run\\*\\\\n\\# x\n")
    assert " on \\<script\\>.tsv (2 pairs)" in card.replace("with regard", "")
    (command,) = [line for line in card.splitlines() if line.startswith("    regard translate")]
    assert command == f"    regard translate '{tmp_path}/a <b>|*run*\\n# x' \"a sentence\""
