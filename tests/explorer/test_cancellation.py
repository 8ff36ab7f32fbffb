import pytest
import torch

from regard.config import SearchConfig
from regard.decoding.translation import translate
from regard.explorer.cancellation import Stop, Stoppable, Stopped
from regard.models.protocols import Seq2SeqModel
from regard.runs import trace_translation


def test_a_stop_is_heard_at_the_next_check():
    stop = Stop()
    stop.check()
    stop.say()
    with pytest.raises(Stopped):
        stop.check()


def test_a_stoppable_model_says_and_sees_what_its_model_does(run):
    model = Stoppable(run.model, Stop())
    assert isinstance(model, Seq2SeqModel)
    sentences = ["the old cat sees the dog", "the red boat"]
    plain = translate(run.model, run.tokenizers, sentences, SearchConfig(beam_size=3), nbest=2)
    assert translate(model, run.tokenizers, sentences, SearchConfig(beam_size=3), nbest=2) == plain
    ours, own = (trace_translation(each, run.tokenizers, *sentences) for each in (model, run.model))
    assert ours.to_json() == own.to_json()


def test_a_search_stops_between_two_steps(run):
    stop, steps = Stop(), []

    class Counting(Stoppable):
        def step(self, tokens, past):
            steps.append(tokens)
            if len(steps) == 3:
                stop.say()
            return super().step(tokens, past)

    with pytest.raises(Stopped):
        translate(Counting(run.model, stop), run.tokenizers, ["the old cat sees the dog"])
    assert len(steps) == 3


def test_the_weights_are_shared_and_not_copied(run):
    model = Stoppable(run.model, Stop())
    assert model.output_weight is run.model.output_weight
    assert model.longest == run.model.longest
    assert all(torch.is_tensor(weight) for weight in model.parameters())
