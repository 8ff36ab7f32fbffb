import pytest

from regard.gallery import translators
from regard.gallery.translators import load_with_and_without_attention, train_in_background


@pytest.fixture
def events(monkeypatch, unchecked):
    """Record which trainings are started, awaited and stopped; no translator is cached."""
    events = []

    class RecordedProcess:
        def __init__(self, command, stderr):
            self.model = command[-1]
            events.append(("start", self.model))

        def wait(self):
            events.append(("wait", self.model))

        def terminate(self):
            events.append(("stop", self.model))

    monkeypatch.setattr(translators, "Popen", RecordedProcess)
    monkeypatch.setattr(translators, "load_or_train", lambda to, model: f"{to} {model}")
    monkeypatch.setattr(translators, "find_cached", lambda to, model: None)
    return events


def test_missing_translators_are_trained_in_parallel(events):
    assert load_with_and_without_attention() == ("fr bahdanau", "fr no_attention")
    assert [event[0] for event in events] == ["start", "start", "wait", "wait"]
    assert {event[1] for event in events} == {"bahdanau", "no_attention"}


def test_cached_translators_are_not_trained_again(events, monkeypatch, tmp_path):
    cached = {"bahdanau": tmp_path, "no_attention": None}
    monkeypatch.setattr(translators, "find_cached", lambda to, model: cached[model])
    load_with_and_without_attention()
    assert events == [("start", "no_attention"), ("wait", "no_attention")]


def test_background_training_is_awaited_when_loading(events):
    with train_in_background():
        assert [event[0] for event in events] == ["start", "start"]
        load_with_and_without_attention()
    assert [event[0] for event in events] == ["start", "start", "wait", "wait"]


def test_unused_background_training_is_stopped(events):
    with pytest.raises(KeyboardInterrupt), train_in_background():
        raise KeyboardInterrupt
    assert sorted(event[:2] for event in events if event[0] == "stop") == [
        ("stop", "bahdanau"),
        ("stop", "no_attention"),
    ]
