"""Per-token log-probabilities of hypotheses agree with a teacher-forced pass."""

import pytest
import torch

from helpers.toy_decoders import forced_log_probs
from regard.decoding import LengthLimits, SamplingConfig, beam_search, greedy_search, sample


def greedy(model, source, lengths, limits):
    return [[each] for each in greedy_search(model, source, lengths, limits=limits)]


def beam(model, source, lengths, limits):
    return beam_search(model, source, lengths, beam_size=6, n_best=6, limits=limits)


def sampled(model, source, lengths, limits):
    sampling = SamplingConfig(temperature=1.3, top_k=6, top_p=0.95, seed=7)
    results = sample(model, source, lengths, sampling=sampling, limits=limits)
    return [[each] for each in results]


@pytest.mark.parametrize("search", [greedy, beam, sampled])
@pytest.mark.parametrize("prefix", [(), (5, 7, 4)], ids=["free", "prefix"])
@pytest.mark.parametrize("max_length", [3, 9])
def test_token_log_probs_are_those_of_teacher_forcing(tiny_model, search, prefix, max_length):
    limits = LengthLimits(min_length=2, max_length=max_length, prefix=prefix)
    for item, hypotheses in enumerate(search(*tiny_model, limits)):
        for hypothesis in hypotheses:
            expected = forced_log_probs(*tiny_model, item, hypothesis.tokens)
            assert len(hypothesis.token_log_probs) == len(hypothesis.tokens) + 1
            assert hypothesis.token_log_probs == pytest.approx(expected, abs=1e-4)
            assert sum(hypothesis.token_log_probs) == pytest.approx(hypothesis.log_prob, abs=1e-5)


def test_log_probs_follow_beams_that_change_their_order(tiny_model, monkeypatch):
    """The case that matters: beams are reordered, and batch items leave at different steps."""
    model, source, lengths = tiny_model
    state_type = type(model.init_state(model.encode(source, lengths)))
    moved, left, reorder, select = [], [], state_type.reorder, state_type.select

    def watched_reorder(self, beam_indices):
        moved.append(beam_indices.tolist() != list(range(len(beam_indices))))
        return reorder(self, beam_indices)

    def watched_select(self, batch_indices, beam_indices):
        left.append(len(batch_indices) < self.batch_size)
        return select(self, batch_indices, beam_indices)

    monkeypatch.setattr(state_type, "reorder", watched_reorder)
    monkeypatch.setattr(state_type, "select", watched_select)
    results = beam_search(
        model, source, lengths, beam_size=4, n_best=4, limits=LengthLimits(max_length=12)
    )
    monkeypatch.undo()
    assert sum(moved) > 2 and any(left)
    for item, hypotheses in enumerate(results):
        for hypothesis in hypotheses:
            expected = forced_log_probs(model, source, lengths, item, hypothesis.tokens)
            assert hypothesis.token_log_probs == pytest.approx(expected, abs=1e-4)


def test_log_probs_are_before_temperature_and_filters(tiny_model):
    sampling = SamplingConfig(temperature=0.3, top_k=1, seed=1)
    limits = LengthLimits(max_length=5)
    (hypothesis, *_) = sample(*tiny_model, sampling=sampling, limits=limits)
    assert hypothesis.log_prob < -1e-3  # after them, the only token left would be certain
    assert torch.tensor(hypothesis.token_log_probs).le(0).all()
