import pytest

from regard import RegardError
from regard.data.phrasebook import load_phrasebook
from regard.demo import find_cached, load_or_train, models, train_demo

pytestmark = [pytest.mark.train, pytest.mark.usefixtures("unchecked")]


@pytest.fixture
def trained_folders(tmp_path, monkeypatch):
    """Use a phrasebook of a few sentences and an empty cache; list the folders that are trained."""
    book = load_phrasebook("fr", train=200, valid=20, test=20)
    monkeypatch.setattr("regard.demo.models.load_phrasebook", lambda _: book)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    folders = []

    def train_and_record(out, to, model, minutes):
        folders.append(out)
        return train_demo(out, to, model, minutes)

    monkeypatch.setattr(models, "train_demo", train_and_record)
    return folders


def test_model_is_trained_once_and_cached(trained_folders):
    assert find_cached(minutes=0.02) is None
    first = load_or_train(minutes=0.02)
    assert find_cached(minutes=0.02) == first.folder.path
    again = load_or_train(minutes=0.02)
    assert trained_folders == [first.folder.path] and again.folder == first.folder
    assert first.folder.path.is_relative_to(models.cache_folder())
    assert load_or_train(model="bahdanau", minutes=0.02).settings.model.kind == "recurrent"
    assert len(trained_folders) == 2


def test_demo_run_nearby_is_used_if_it_has_the_same_model(trained_folders, tmp_path):
    train_demo(tmp_path / "demo", minutes=0.02)
    assert load_or_train().folder.path.name == "demo" and not trained_folders
    assert load_or_train(model="no_attention", minutes=0.02).settings.model.use_attention is False
    assert len(trained_folders) == 1


def test_unfinished_run_nearby_is_not_used(trained_folders, tmp_path):
    run = train_demo(tmp_path / "demo", minutes=0.02)
    run.folder.model_card.unlink()  # written last
    assert load_or_train(minutes=0.02).folder.path != run.folder.path
    assert len(trained_folders) == 1


def test_unknown_model_and_language_are_refused(trained_folders):
    with pytest.raises(RegardError, match="no model of the demo is called 'lstm'"):
        load_or_train(model="lstm")
    with pytest.raises(RegardError, match="no language of the phrasebook is called 'de'"):
        load_or_train(to="de")
    assert not trained_folders
