import pytest

from regard.gallery import translators
from regard.gallery.translators import learning_meanwhile, with_and_without


@pytest.fixture
def told(monkeypatch, unchecked):
    """Note what is started, waited for and taken; only bahdanau's is there at first."""
    notes = []

    class Started:
        def __init__(self, command, stderr):
            self.model = command[-2]
            notes.append(("start", self.model, command[-1]))

        def wait(self):
            notes.append(("wait", self.model))

        def terminate(self):
            notes.append(("stop", self.model))

    monkeypatch.setattr(translators, "Popen", Started)
    monkeypatch.setattr(translators, "load_or_train", lambda to, model, minutes: f"{to} {model}")
    monkeypatch.setattr(translators, "find_cached", lambda to, model, minutes: None)
    return notes


def test_missing_translators_learn_at_the_same_time(told):
    assert with_and_without() == ("fr bahdanau", "fr no_attention")
    assert [note[0] for note in told] == ["start", "start", "wait", "wait"]
    assert {note[1] for note in told} == {"bahdanau", "no_attention"}


def test_those_that_are_there_are_not_trained_again(told, monkeypatch, tmp_path):
    there = {"bahdanau": tmp_path, "no_attention": None}
    monkeypatch.setattr(translators, "find_cached", lambda to, model, minutes: there[model])
    with_and_without()
    assert told == [("start", "no_attention", str(translators.MINUTES)), ("wait", "no_attention")]


def test_they_may_learn_before_they_are_asked_for(told):
    with learning_meanwhile():
        assert [note[0] for note in told] == ["start", "start"]
        with_and_without()
    assert [note[0] for note in told] == ["start", "start", "wait", "wait"]


def test_those_that_no_one_asked_for_are_stopped(told):
    with pytest.raises(KeyboardInterrupt), learning_meanwhile():
        raise KeyboardInterrupt
    assert sorted(note[:2] for note in told if note[0] == "stop") == [
        ("stop", "bahdanau"),
        ("stop", "no_attention"),
    ]
