from regard.config import RunConfig
from regard.runs import RunFolder
from regard.training.model_card import card
from regard.training.state import Progress

ORIGIN = {"texts": ["a.tsv"], "fingerprints": ["f"], "pairs": 1234}


def test_a_card_tells_what_the_run_is_and_how_good(tmp_path):
    folder = RunFolder(tmp_path / "my-run")
    folder.write_settings(RunConfig(), ORIGIN)
    progress = Progress(step=99, seconds=600.0, finished="all planned steps are done")
    texts = ["le chat dort bien ici", "un | chien <b>"]
    told = card(folder, RunConfig(), progress, "step 9", 1.5, texts, ["le chat dort bien ici", "x"])
    assert told.startswith("# my-run\n")
    assert "a.tsv (1,234 pairs)" in told and "99 steps, 10 min" in told
    assert "perplexity 4.48" in told and "exact match | 50.0%" in told
    assert f'regard translate {folder.path} "a sentence"' in told


def test_text_of_a_model_is_no_markup(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_settings(RunConfig(), ORIGIN)
    texts = ["<script>|*bold*"]
    told = card(folder, RunConfig(), Progress(finished="x"), "step 1", 1.0, texts, texts)
    assert "| \\<script\\>\\|\\*bold\\* |" in told
