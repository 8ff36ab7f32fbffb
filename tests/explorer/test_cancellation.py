import pytest

from regard.decoding import DecodingCancelled
from regard.explorer.cancellation import Stop, Stopped
from regard.explorer.inference import translations


def test_a_stop_is_heard_at_the_next_check():
    stop = Stop()
    stop.check()
    assert not stop.is_set()
    stop.say()
    assert stop.is_set()
    with pytest.raises(Stopped):
        stop.check()


def test_translation_is_cancelled_between_two_decoding_steps(run, monkeypatch):
    stop, steps, step = Stop(), [], run.model.step

    def counted(tokens, state):
        steps.append(tokens)
        if len(steps) == 2:
            stop.say()
        return step(tokens, state)

    monkeypatch.setattr(run.model, "step", counted)
    with pytest.raises(DecodingCancelled):
        translations(run, "the old cat sees the dog", 3, 1, stop)
    assert len(steps) == 2
