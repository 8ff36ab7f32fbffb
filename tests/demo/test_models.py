import pytest

from regard.data.phrasebook import load_phrasebook
from regard.demo import models
from regard.demo.models import find_cached, load_or_train, train_demo
from regard.errors import RegardError

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture
def little(tmp_path, monkeypatch):
    """A phrasebook of a few sentences, and a cache of its own; give what was trained."""
    book = load_phrasebook("fr", train=200, valid=20, test=20)
    monkeypatch.setattr("regard.demo.models.load_phrasebook", lambda _: book)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    trained = []

    def counted(out, to, model, minutes):
        trained.append(out)
        return train_demo(out, to, model, minutes)

    monkeypatch.setattr(models, "train_demo", counted)
    return trained


def test_phrases_become_pairs_whose_parts_are_the_linked_words():
    phrase = load_phrasebook("fr", train=10, valid=1, test=1).train[0]
    pair = phrase.to_pair()
    links = [(pair.source[slice(*s)], pair.target[slice(*t)]) for s, t in pair.links]
    wanted = [(phrase.source_words[s], phrase.target_words[t]) for s, t in phrase.links]
    assert links == wanted
    assert len(phrase.word_spans().source) == len(phrase.source_words)


def test_a_translator_is_trained_once_and_kept(little):
    assert find_cached(minutes=0.02) is None
    first = load_or_train(minutes=0.02)
    assert find_cached(minutes=0.02) == first.folder.path
    again = load_or_train(minutes=0.02)
    assert little == [first.folder.path] and again.folder == first.folder
    assert first.folder.path.is_relative_to(models.cache_folder())
    assert load_or_train(model="bahdanau", minutes=0.02).settings.model.kind == "recurrent"
    assert len(little) == 2


def test_the_demo_nearby_is_used_if_it_is_the_same_translator(little, tmp_path):
    train_demo(tmp_path / "demo", minutes=0.02)
    assert load_or_train().folder.path.name == "demo" and not little
    assert load_or_train(model="no_attention", minutes=0.02).settings.model.use_attention is False
    assert len(little) == 1


def test_a_run_that_was_interrupted_goes_on(little, tmp_path):
    run = train_demo(tmp_path / "demo", minutes=0.02)
    run.folder.model_card.unlink()  # written at the very end
    assert load_or_train(minutes=0.02).folder.path != run.folder.path and len(little) == 1


def test_what_the_lesson_does_not_know_is_refused(little):
    with pytest.raises(RegardError, match="no model of the demo is called 'lstm'"):
        load_or_train(model="lstm")
    with pytest.raises(RegardError, match="no language of the phrasebook is called 'de'"):
        load_or_train(to="de")
    assert not little
