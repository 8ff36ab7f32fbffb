"""What the page can compute is described; every other part is refused by its name."""

import numpy as np
import pytest
import torch
from torch import nn

from helpers.browser_fixtures import SEARCH, untrained
from regard.attention import as_score
from regard.browser import describe_translator
from regard.browser.parameters import ParameterTable
from regard.config import ModelConfig
from regard.errors import RegardError
from regard.models import FeedForward, Transformer, build
from regard.positions import ALiBi, Learned, Rotary


class Swish(FeedForward):
    """A feed-forward network of another kind."""


class TimeSignal(nn.Module):
    def forward(self, vectors, offset=0):
        return vectors


def with_other_cells(model):
    model = build(ModelConfig(kind="recurrent", width=12), 310)
    model.decoder = nn.RNN(36, 12)
    return model


def with_score(score):
    def change(model):
        model.decoder.layers[1].cross.score = as_score(score)
        return model

    return change


def with_feed_forward(model):
    model.encoder.layers[0].feed_forward = Swish(12, 10)
    return model


def with_activation(model):
    model.encoder.layers[1].feed_forward.activation = "swish"
    return model


def with_norm(model):
    model.encoder.layers[1].feed_forward_residual.norm = nn.RMSNorm(12)
    return model


def with_cross_positions(model):
    model.decoder.layers[0].cross.positions = Rotary(4)
    return model


def with_attention_positions(model):
    model.encoder.layers[0].attention.positions = Learned(5, 12)
    return model


def with_embedding_positions(model):
    model.source_embedding.positions = TimeSignal()
    return model


def with_subclass(model):
    class Derived(Transformer):
        pass

    model.__class__ = Derived
    return model


UNSUPPORTED = {
    "a RNN": with_other_cells,
    "a Derived": with_subclass,
    "the score Kernel": lambda model: untrained(score="boxcar")[0],
    "the score loudest": with_score(lambda q, k: q @ k.mT),
    "a Swish": with_feed_forward,
    "the activation swish": with_activation,
    "the norm RMSNorm": with_norm,
    "Rotary positions in cross-attention": with_cross_positions,
    "Learned positions of attention": with_attention_positions,
    "TimeSignal positions of an embedding": with_embedding_positions,
}


@pytest.mark.parametrize("part", UNSUPPORTED)
def test_part_that_the_page_cannot_compute_is_refused_by_its_name(part, unchecked):
    model, tokenizers = untrained()
    model = UNSUPPORTED[part](model)
    part = "the score <lambda>" if part == "the score loudest" else part
    with pytest.raises(RegardError, match=f"^a page cannot compute {part}.*; to='onnx' can$"):
        describe_translator(model, tokenizers, SEARCH, name="tiny")


def test_layer_without_cross_attention_is_described(unchecked):
    model, tokenizers = untrained()
    model.decoder.layers[0].cross = model.decoder.layers[0].cross_residual = None
    record = describe_translator(model, tokenizers, SEARCH, name="tiny").record
    first, second = record["architecture"]["decoder"]["layers"]
    assert first["cross"] is None and second["cross"] is not None


def test_shared_parameters_are_stored_once():
    model, tokenizers = untrained()
    record = describe_translator(model, tokenizers, SEARCH, name="tiny").record
    architecture = record["architecture"]
    weight = architecture["source_embedding"]["weight"]
    assert architecture["target_embedding"]["weight"] == architecture["output"] == weight
    assert len(record["tensors"]) == len(list(model.parameters()))
    assert record["target_tokenizer"] is None


def test_offsets_are_multiples_of_four_bytes():
    table = ParameterTable("int8")
    for rows, columns in ((3, 5), (1, 1), (2, 7)):
        table.add("a matrix", torch.randn(rows, columns))
    assert [record["offset"] % 4 for record in table.records] == [0, 0, 0]


def test_int8_rounds_each_row_to_127_steps_of_its_largest_value():
    matrix = torch.tensor([[0.5, -1.27, 0.01], [100.0, 50.0, -25.4], [0.0, 0.0, 0.0]])
    table = ParameterTable("int8")
    table.add("a matrix", matrix)
    scales = np.frombuffer(bytes(table._data), "<f4", 3)
    integers = np.frombuffer(bytes(table._data), "<i1", 9, offset=12).reshape(3, 3)
    np.testing.assert_array_equal(integers[0], [50, -127, 1])
    error = abs(integers * scales[:, None] - matrix.numpy())
    assert (error <= abs(matrix.numpy()).max(1, keepdims=True) / 254 + 1e-6).all()


def test_value_that_float16_cannot_hold_is_refused():
    table = ParameterTable("float16")
    with pytest.raises(RegardError, match=r"up to 65504, but a matrix has one of 1e\+05; use .*32"):
        table.add("a matrix", torch.full((2, 2), 1e5))


def test_unknown_quantization_is_refused_with_the_nearest():
    with pytest.raises(RegardError, match=r"called 'int9'\. Did you mean 'int8'"):
        ParameterTable("int9")


def test_slopes_and_settings_are_those_of_the_model():
    model, tokenizers = untrained(positions="alibi", score="gaussian")
    record = describe_translator(model, tokenizers, SEARCH, name="tiny").record
    attention = record["architecture"]["encoder"]["layers"][0]["attention"]
    assert attention["positions"] == {"kind": "alibi", "slopes": ALiBi(3).slopes.tolist()}
    assert attention["score"]["compare"] == "distance"
    assert record["search"] == {"beam_size": 3, "length_penalty": 0.8}
