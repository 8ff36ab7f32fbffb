import shutil

import pytest

from regard.errors import RegardError
from regard.runs import RunFolder
from regard.serving import parse_run


@pytest.fixture
def run_of_texts(tiny_run, tmp_path):
    """Return a function that makes a run which was trained on files of some names."""

    def make(*texts):
        folder = RunFolder(shutil.copytree(tiny_run, tmp_path / "other"))
        settings, origin = folder.read_settings()
        origin = {**origin, "dataset": None, "texts": list(texts)}
        folder.write_settings(settings, origin, folder.read_id())
        return str(folder.path)

    return make


@pytest.mark.parametrize(
    ("texts", "languages"),
    [
        (["data/train.en", "data/train.de.gz"], "en:de"),
        (["data/pairs.en-zh.tsv"], "en:zh"),
        (["fr_en.tsv.gz"], "fr:en"),
    ],
)
def test_languages_follow_from_file_names(run_of_texts, texts, languages):
    assert str(parse_run(run_of_texts(*texts))[1]) == languages


def test_unknown_languages_are_refused_with_the_argument_that_names_them(run_of_texts):
    run = run_of_texts("pairs.tsv")
    with pytest.raises(RegardError, match=f"languages of {run} are unknown.*{run}=en:fr"):
        parse_run(run)
    path, languages = parse_run(f"{run}=de:nl")
    assert (str(path), str(languages)) == (run, "de:nl")


def test_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(RegardError, match="is not a run"):
        parse_run(f"{tmp_path}=en:fr")
