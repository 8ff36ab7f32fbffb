"""Sampling: temperature, top-k, top-p and seeds."""

import pytest
import torch

from helpers import no_float64
from regard import RegardError
from regard.data import BOS, EOS, PAD
from regard.decoding import LengthLimits, SamplingConfig, greedy_search, sample

VOCAB_SIZE = 9
LIMITS = LengthLimits(max_length=6)


def test_samples_follow_the_models_probabilities(tiny_model):
    model, source, lengths = tiny_model
    rows = torch.zeros(4000).long()
    many = model.init_state(model.encode(source, lengths)).select(rows, rows)
    samples = sample(
        model, many, sampling=SamplingConfig(seed=3), limits=LengthLimits(max_length=1)
    )
    first = [each.tokens[0] if each.tokens else EOS for each in samples]
    state = model.init_state(model.encode(source, lengths))
    states, _ = model.step(torch.full((3, 1), BOS), state)
    logits = model.logits(states)[0, 0]
    logits[[PAD, BOS]] = -torch.inf
    frequencies = torch.bincount(torch.tensor(first), minlength=VOCAB_SIZE) / 4000
    torch.testing.assert_close(frequencies, logits.softmax(-1), rtol=0, atol=0.04)


def test_same_seed_gives_the_same_samples_and_another_seed_others(tiny_model):
    one, same, other = (
        sample(*tiny_model, sampling=SamplingConfig(seed=seed), limits=LIMITS) for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other


@pytest.mark.parametrize(
    "narrow", [{"top_k": 1}, {"top_p": 1e-6}, {"temperature": 1e-4}, {"temperature": 1e-42}]
)
def test_narrow_sampling_is_greedy_search(tiny_model, narrow):
    samples = sample(*tiny_model, sampling=SamplingConfig(seed=5, **narrow), limits=LIMITS)
    best = greedy_search(*tiny_model, limits=LIMITS)
    assert [each.tokens for each in samples] == [each.tokens for each in best]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"temperature": 0.0}, "temperature must be above 0 and finite, but it is 0.0"),
        ({"temperature": float("inf")}, "temperature must be .* finite, but it is inf"),
        ({"temperature": float("nan")}, "temperature must be .* finite, but it is nan"),
        ({"top_k": 0}, "top_k must be 1 or more, or None for all, but it is 0"),
        ({"top_p": 0.0}, "top_p must be above 0 and at most 1, but it is 0.0"),
        ({"top_p": 1.5}, "top_p must be above 0 and at most 1, but it is 1.5"),
        ({"seed": -1}, "seed must be from 0 to 9223372036854775807, but it is -1"),
    ],
)
def test_sampling_value_out_of_range_is_refused(values, message):
    with pytest.raises(RegardError, match=message):
        SamplingConfig(**values)


def test_top_k_and_top_p_limit_the_tokens_that_are_sampled(tiny_model):
    model, source, lengths = tiny_model
    rows = torch.zeros(500).long()
    many = model.init_state(model.encode(source, lengths)).select(rows, rows)
    states, _ = model.step(torch.full((500, 1), BOS), many)
    logits = model.logits(states)[0, 0]
    logits[[PAD, BOS]] = -torch.inf
    probs, ranked = logits.softmax(-1).sort(descending=True)
    nucleus = int((probs.cumsum(0) < 0.8).sum()) + 1
    one_token = LengthLimits(max_length=1)
    for config, allowed in ({"top_k": 3}, 3), ({"top_p": 0.8}, nucleus):
        samples = sample(model, many, sampling=SamplingConfig(seed=2, **config), limits=one_token)
        first = {each.tokens[0] if each.tokens else EOS for each in samples}
        assert first == set(ranked[:allowed].tolist())


@pytest.mark.parametrize("tiny_model", [{}], indirect=True)
def test_devices_without_float64_give_the_samples_of_the_cpu(tiny_model):
    sampling = SamplingConfig(temperature=1.5, seed=3)
    model, *inputs = tiny_model
    expected = sample(model, *inputs, sampling=sampling, limits=LIMITS)
    model = no_float64.copy_of(model)
    with no_float64.SimulatedDevice():
        moved = [x.to(no_float64.DEVICE) for x in inputs]
        samples = sample(model, *moved, sampling=sampling, limits=LIMITS)
    assert samples == expected


@pytest.mark.parametrize("name", ["top_k", "seed"])
def test_sampling_value_that_is_not_an_integer_is_refused(name, unchecked):
    with pytest.raises(TypeError, match=f"{name} must be an integer or None, but .* type float"):
        SamplingConfig(**{name: 1.5})


@pytest.mark.parametrize("name", ["temperature", "top_p"])
@pytest.mark.parametrize("value", ["0.5", None, True])
def test_sampling_value_that_is_no_number_is_refused(name, value, unchecked):
    with pytest.raises(TypeError, match=f"{name} must be a number, but it is "):
        SamplingConfig(**{name: value})
