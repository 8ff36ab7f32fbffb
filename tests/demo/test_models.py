import pytest

from regard import RegardError
from regard.data.phrasebook import load_phrasebook
from regard.demo import find_cached, load_or_train, models, train_demo

pytestmark = [pytest.mark.train, pytest.mark.usefixtures("unchecked")]

TINY = {"to": "zh", "steps": 3}


@pytest.fixture
def trained_folders(tmp_path, monkeypatch):
    """Use a phrasebook of a few sentences and an empty cache; list the folders that are trained."""
    book = load_phrasebook("zh", train=200, valid=20, test=20)
    monkeypatch.setattr("regard.demo.models.load_phrasebook", lambda _: book)
    monkeypatch.setattr(models, "MIN_BLEU", dict.fromkeys(models.MODELS, 0.0))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    folders = []

    def train_and_record(out, to, model, steps):
        folders.append(out)
        return train_demo(out, to, model, steps=steps)

    monkeypatch.setattr(models, "train_demo", train_and_record)
    return folders


def test_model_is_trained_once_and_cached(trained_folders):
    assert find_cached(**TINY) is None
    first = load_or_train(**TINY)
    assert find_cached(**TINY) == first.folder.path
    again = load_or_train(**TINY)
    assert trained_folders == [first.folder.path] and again.folder == first.folder
    assert first.folder.path.is_relative_to(models.version_cache_folder())


def test_cached_models_are_keyed_by_what_they_were_trained_with(trained_folders, monkeypatch):
    first = load_or_train(**TINY)
    assert find_cached(**TINY) == first.folder.path
    assert find_cached(to="zh", steps=4) is None
    assert find_cached(to="fr", steps=3, snapshots=True) is None
    assert find_cached(model="bahdanau", **TINY) is None
    changed = {**models.COMMON, "train": {**models.COMMON["train"], "batch_tokens": 512}}
    monkeypatch.setattr(models, "COMMON", changed)
    assert find_cached(**TINY) is None
    assert not models._has_model(first.folder.path, "zh", "transformer", 3)


def test_model_below_the_stated_quality_is_not_kept(trained_folders, monkeypatch):
    monkeypatch.setattr(models, "MIN_BLEU", dict.fromkeys(models.MODELS, 90.0))
    message = r"must reach BLEU 90 on the validation pairs to be kept, but it reached \d"
    with pytest.raises(RegardError, match=message):
        load_or_train(**TINY)
    assert len(trained_folders) == 1 and not trained_folders[0].exists()


def test_demo_run_nearby_is_used_if_it_has_the_same_model(trained_folders, tmp_path, monkeypatch):
    train_demo(tmp_path / "demo", "zh", steps=3)
    assert load_or_train(**TINY).folder.path.name == "demo" and not trained_folders
    assert find_cached(to="zh", steps=4) is None
    assert find_cached(model="no_attention", **TINY) is None
    monkeypatch.setattr(models, "MIN_BLEU", dict.fromkeys(models.MODELS, 90.0))
    assert find_cached(**TINY) is None


def test_attention_and_no_attention_are_distinguished(trained_folders, tmp_path):
    train_demo(tmp_path / "demo", "zh", "no_attention", steps=3)
    assert find_cached(model="no_attention", **TINY) is not None
    assert find_cached(model="bahdanau", **TINY) is None


def test_unfinished_run_nearby_is_not_used(trained_folders, tmp_path):
    run = train_demo(tmp_path / "demo", "zh", steps=3)
    run.folder.model_card.unlink()  # written last
    assert find_cached(**TINY) is None


def test_cached_run_that_cannot_be_read_is_trained_again(trained_folders):
    settings = load_or_train(**TINY).folder.path / "settings.json"
    settings.write_text('{"format_version": 0}')
    assert find_cached(**TINY) is None
    assert load_or_train(**TINY).folder.path == settings.parent == find_cached(**TINY)
    assert len(trained_folders) == 2


def test_shipped_model_serves_unless_snapshots_are_needed(trained_folders):
    assert load_or_train().name == "demo-model" and not trained_folders
    assert find_cached(snapshots=True) is None


def test_unknown_model_and_language_are_refused(trained_folders):
    with pytest.raises(RegardError, match="no model of the demo is called 'lstm'"):
        load_or_train(model="lstm")
    with pytest.raises(RegardError, match="no language of the phrasebook is called 'de'"):
        load_or_train(to="de")
    assert not trained_folders
