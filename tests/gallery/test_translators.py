import pytest

from regard.gallery import translators
from regard.gallery.translators import load_with_and_without_attention, train_in_background


@pytest.fixture
def told(monkeypatch, unchecked):
    """Note what is started, waited for and taken; only bahdanau's is there at first."""
    notes = []

    class Started:
        def __init__(self, command, stderr):
            self.model = command[-1]
            notes.append(("start", self.model))

        def wait(self):
            notes.append(("wait", self.model))

        def terminate(self):
            notes.append(("stop", self.model))

    monkeypatch.setattr(translators, "Popen", Started)
    monkeypatch.setattr(translators, "load_or_train", lambda to, model: f"{to} {model}")
    monkeypatch.setattr(translators, "find_cached", lambda to, model: None)
    return notes


def test_missing_translators_are_trained_in_parallel(told):
    assert load_with_and_without_attention() == ("fr bahdanau", "fr no_attention")
    assert [note[0] for note in told] == ["start", "start", "wait", "wait"]
    assert {note[1] for note in told} == {"bahdanau", "no_attention"}


def test_cached_translators_are_not_trained_again(told, monkeypatch, tmp_path):
    there = {"bahdanau": tmp_path, "no_attention": None}
    monkeypatch.setattr(translators, "find_cached", lambda to, model: there[model])
    load_with_and_without_attention()
    assert told == [("start", "no_attention"), ("wait", "no_attention")]


def test_background_training_is_awaited_when_loading(told):
    with train_in_background():
        assert [note[0] for note in told] == ["start", "start"]
        load_with_and_without_attention()
    assert [note[0] for note in told] == ["start", "start", "wait", "wait"]


def test_unused_background_training_is_stopped(told):
    with pytest.raises(KeyboardInterrupt), train_in_background():
        raise KeyboardInterrupt
    assert sorted(note[:2] for note in told if note[0] == "stop") == [
        ("stop", "bahdanau"),
        ("stop", "no_attention"),
    ]
