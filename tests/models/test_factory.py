"""Models built from a config."""

import re
from dataclasses import replace

import pytest

from regard import RegardError
from regard.config import ModelConfig
from regard.models import (
    RecurrentModel,
    Transformer,
    build,
    build_classifier,
    build_language_model,
    count_parameters,
    min_parameters,
)
from regard.positions import ALiBi, Learned, Rotary, Sinusoidal

SMALL = {"width": 12, "layers": 1, "heads": 3, "ffn_width": 8}


def test_embeddings_are_shared_if_vocabularies_are_one_and_the_config_allows_it():
    shared = build(ModelConfig(**SMALL), 9)
    assert shared.source_embedding is shared.target_embedding
    for separate in (
        build(ModelConfig(**SMALL), (9, 8)),
        build(ModelConfig(**SMALL, share_embeddings=False), 9),
    ):
        assert separate.source_embedding is not separate.target_embedding


def test_config_of_another_type_is_a_type_error(unchecked):
    with pytest.raises(TypeError, match="config must be a ModelConfig, but it is of type dict"):
        build(SMALL, 9)


@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
def test_output_projection_is_the_target_embedding_if_tied(kind):
    tied = build(ModelConfig(**SMALL, kind=kind), (9, 7))
    assert tied.output_weight is tied.target_embedding.weight
    untied = build(ModelConfig(**SMALL, kind=kind, tie_output=False), (9, 7))
    assert untied.output_weight.shape == (7, 12)
    assert untied.output_weight is not untied.target_embedding.weight


@pytest.mark.parametrize(
    ("positions", "in_embedding", "in_attention"),
    [
        ("sinusoidal", Sinusoidal, type(None)),
        ("learned", Learned, type(None)),
        ("rotary", type(None), Rotary),
        ("alibi", type(None), ALiBi),
    ],
)
def test_positions_are_in_embedding_or_self_attention_and_never_in_cross_attention(
    positions, in_embedding, in_attention
):
    model = build(ModelConfig(**SMALL, positions=positions), 9)
    assert isinstance(model.source_embedding.positions, in_embedding)
    assert isinstance(model.decoder.layers[0].attention.positions, in_attention)
    assert model.decoder.layers[0].cross.positions is None


def test_only_pre_norm_stacks_have_a_final_norm():
    assert build(ModelConfig(**SMALL), 9).encoder.norm is None
    assert build(ModelConfig(**SMALL, norm="pre"), 9).encoder.norm is not None


def test_kind_chooses_the_class():
    assert isinstance(build(ModelConfig(**SMALL), 9), Transformer)
    assert isinstance(build(ModelConfig(**SMALL, kind="recurrent"), 9), RecurrentModel)


@pytest.mark.parametrize(
    "build_any",
    [
        lambda config: build(config, 9),
        lambda config: build_language_model(config, 9),
        lambda config: build_classifier(config, 9, 3),
    ],
    ids=["translator", "language model", "classifier"],
)
def test_settings_that_do_not_fit_are_refused_by_section(build_any):
    with pytest.raises(RegardError, match=r"under \[model\] do not fit: model.width must be a mul"):
        build_any(ModelConfig(width=10, heads=3))
    with pytest.raises(RegardError, match="no attention score is called 'aditive'"):
        build_any(ModelConfig(**SMALL, score="aditive"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 100, "heads": 8}, "but 100 / 8 leaves 4; model.heads=10 or model.width=96"),
        ({"width": 256, "heads": 7}, "but 256 / 7 leaves 4; model.heads=8 or model.width=259"),
        ({"width": 12, "heads": 24}, "but 12 / 24 leaves 12; model.heads=12 or model.width=24"),
        ({"width": 64, "heads": 8, "key_heads": 3}, "8 / 3 leaves 2; model.key_heads=2 would"),
        (
            {"width": 36, "heads": 4, "positions": "rotary"},
            "rotary positions, but 36 / 4 is 9; model.heads=3 or model.width=32",
        ),
        ({"width": 15, "heads": 5, "positions": "rotary"}, "15 / 5 is 3; model.width=20 would"),
    ],
)
def test_heads_that_do_not_divide_are_refused_with_settings_that_work(settings, message):
    config = ModelConfig(layers=1, ffn_width=8, **settings)
    with pytest.raises(RegardError, match=message) as refused:
        build(config, 100)
    assert "head_width" not in str(refused.value)
    for name, value in re.findall(r"model\.(\w+)=(\d+)", str(refused.value)):
        build(replace(config, **{name: int(value)}), 100)


def test_one_vocab_size_is_that_of_both_sides():
    one, pair = build(ModelConfig(**SMALL), 9), build(ModelConfig(**SMALL), (9, 9))
    assert one.source_embedding is one.target_embedding
    assert [p.shape for p in one.parameters()] == [p.shape for p in pair.parameters()]


@pytest.mark.parametrize("vocab_size", [0, (9, 0), -1])
def test_empty_vocabulary_is_refused(vocab_size):
    with pytest.raises(RegardError, match=r"vocab_size must be 1 or more, but it is"):
        build(ModelConfig(**SMALL), vocab_size)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"norm": "pre", "tie_output": False, "positions": "learned", "max_positions": 20},
        {"score": "additive", "share_embeddings": False},
        {"key_heads": 1, "score": "bilinear", "positions": "rotary", "width": 24},
        {"kind": "recurrent", "score": "additive"},
        {"kind": "recurrent", "use_attention": False, "tie_output": False},
    ],
)
@pytest.mark.parametrize("layers", [1, 2, 3, 6])
@pytest.mark.parametrize("sizes", [(9, 9), (9, 7)])
def test_counted_parameters_are_those_of_the_model(settings, layers, sizes):
    config = ModelConfig(**SMALL | settings | {"layers": layers})
    actual = sum(parameter.numel() for parameter in build(config, sizes).parameters())
    assert count_parameters(config, sizes) == actual
    assert actual / 20 < min_parameters(config, sizes) <= actual


def test_large_model_is_counted_without_being_built():
    config = ModelConfig(width=10**6, layers=1000, heads=1, ffn_width=10**7)
    assert count_parameters(config, 10**6) > min_parameters(config, (10**6, 10**6)) > 10**16


@pytest.mark.parametrize("vocab_size", [(), (9,), (9, 9, 9)])
def test_vocab_size_that_is_no_pair_is_refused(vocab_size, unchecked):
    with pytest.raises(RegardError, match=r"one for the source and one for the target, but it is"):
        build(ModelConfig(**SMALL), vocab_size)
