"""Models built from a config."""

import pytest

from regard import RegardError
from regard.config import ModelConfig
from regard.models import RecurrentModel, Transformer, build, build_classifier, build_language_model
from regard.positions import ALiBi, Learned, Rotary, Sinusoidal

SMALL = {"width": 12, "layers": 1, "heads": 3, "ffn_width": 8}


def test_embeddings_are_shared_if_vocabularies_are_one_and_the_config_allows_it():
    shared = build(ModelConfig(**SMALL), (9, 9))
    assert shared.source_embedding is shared.target_embedding
    for separate in (
        build(ModelConfig(**SMALL), (9, 8)),
        build(ModelConfig(**SMALL, share_embeddings=False), (9, 9)),
    ):
        assert separate.source_embedding is not separate.target_embedding


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
    model = build(ModelConfig(**SMALL, positions=positions), (9, 9))
    assert isinstance(model.source_embedding.positions, in_embedding)
    assert isinstance(model.decoder.layers[0].attention.positions, in_attention)
    assert model.decoder.layers[0].cross.positions is None


def test_only_pre_norm_stacks_have_a_final_norm():
    assert build(ModelConfig(**SMALL), (9, 9)).encoder.norm is None
    assert build(ModelConfig(**SMALL, norm="pre"), (9, 9)).encoder.norm is not None


def test_kind_chooses_the_class():
    assert isinstance(build(ModelConfig(**SMALL), (9, 9)), Transformer)
    assert isinstance(build(ModelConfig(**SMALL, kind="recurrent"), (9, 9)), RecurrentModel)


@pytest.mark.parametrize(
    "build_any",
    [
        lambda config: build(config, (9, 9)),
        lambda config: build_language_model(config, 9),
        lambda config: build_classifier(config, 9, 3),
    ],
    ids=["translator", "language model", "classifier"],
)
def test_settings_that_do_not_fit_are_refused_by_section(build_any):
    with pytest.raises(RegardError, match=r"under \[model\] do not fit: width must be a multiple"):
        build_any(ModelConfig(width=10, heads=3))
    with pytest.raises(RegardError, match="no attention score is called 'aditive'"):
        build_any(ModelConfig(**SMALL, score="aditive"))
