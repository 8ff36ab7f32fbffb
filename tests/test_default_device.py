"""Tensors are on the device of the arguments, whatever `torch.set_default_device` says.

On the meta device, which has no values, every tensor that follows the default fails at once.
"""

import numpy as np
import pytest
import torch

import regard
from regard.analysis import METHODS
from regard.data import EncodedPairs, collate
from regard.models import build
from regard.models.layers import dropout
from regard.positions import Rotary, Sinusoidal

SENTENCES = ["The white cat broke the cup.", "The dog sleeps."]


@pytest.fixture(scope="module")
def run():
    return regard.load("demo-model", engine="torch")


@pytest.fixture
def words():
    return torch.randn(2, 5, 12, device="cpu")


@pytest.fixture
def meta_is_default():
    with torch.device("meta"):
        yield


@pytest.mark.parametrize("score", regard.attention.scores.PARAMETER_FREE)
@pytest.mark.parametrize("backend", [None, "dense"])
def test_attention_is_on_the_device_of_its_arguments(words, meta_is_default, score, backend):
    context = regard.attend(words, score=score, mask=regard.masks.causal(), backend=backend)
    with torch.device("cpu"):
        expected = regard.attend(words, score=score, mask=regard.masks.causal(), backend=backend)
    assert torch.equal(context, expected)


@pytest.mark.parametrize("make", [lambda: Sinusoidal(12), lambda: Rotary(12)])
def test_position_table_is_on_the_device_of_the_vectors(words, meta_is_default, make):
    assert torch.equal(make()(words).isfinite(), torch.ones_like(words).bool())


def test_dropout_is_on_the_device_of_the_states(words, meta_is_default):
    dropped = dropout(words, 0.5, training=True)
    assert dropped.device == words.device
    assert 0 < int((dropped == 0).sum()) < words.numel()


def test_run_is_loaded_on_the_device_that_is_named(run, meta_is_default):
    loaded = regard.load("demo-model", device="cpu", engine="torch")
    for own, expected in zip(loaded.model.parameters(), run.model.parameters(), strict=True):
        assert own.device.type == "cpu" and own.equal(expected)


def test_batch_is_on_the_cpu(meta_is_default):
    starts, links = np.array([0, 2, 5]), np.array([[0, 1], [1, 0]], dtype=np.uint16)
    ids = np.array([5, 6, 7, 8, 9], dtype=np.uint16)
    pairs = EncodedPairs(ids, starts, ids, starts, links.ravel(), np.array([0, 2, 4]), {})
    batch = collate(pairs, np.array([0, 1]), with_links=True)
    assert {tensor.device.type for tensor in batch} == {"cpu"}
    assert batch.lengths.tolist() == [2, 3]


@pytest.mark.parametrize("options", [{}, {"sample": True, "seed": 3}, {"prefix": "le"}])
def test_translation_does_not_depend_on_the_default_device(run, options):
    expected = run.translate(SENTENCES, **options)
    with torch.device("meta"):
        assert run.translate(SENTENCES, **options) == expected


def test_trace_does_not_depend_on_the_default_device(run):
    expected = run.trace(SENTENCES[1]).to_json()
    with torch.device("meta"):
        assert run.trace(SENTENCES[1]).to_json() == expected


@pytest.mark.filterwarnings("ignore:integrated gradients have not converged")
@pytest.mark.parametrize("method", METHODS)
def test_attribution_does_not_depend_on_the_default_device(run, method):
    expected = run.attribute(SENTENCES[1], "le chien dort.", method=method, steps=3).to_json()
    with torch.device("meta"):
        actual = run.attribute(SENTENCES[1], "le chien dort.", method=method, steps=3).to_json()
    assert actual == expected


@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
def test_training_pass_is_on_the_device_of_the_model(kind):
    config = regard.ModelConfig(kind=kind, width=8, layers=1, heads=2, dropout=0.5)
    model = build(config, 20).train()
    source, lengths = torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([3, 2])
    with torch.device("meta"):
        states = model(source, lengths, source)
    assert states.device.type == "cpu"
    states.sum().backward()
