"""Settings become modules in `regard.models`."""

import pytest

from regard import RegardError
from regard.config import ModelConfig
from regard.models import Recurrent, Transformer, build
from regard.positions import ALiBi, Learned, Rotary, Sinusoidal

SMALL = {"width": 12, "layers": 1, "heads": 3, "ffn_width": 8}


def test_one_vocabulary_is_one_embedding_unless_told_otherwise():
    assert (shared := build(ModelConfig(**SMALL), (9, 9))).source is shared.target
    for apart in (
        build(ModelConfig(**SMALL), (9, 8)),
        build(ModelConfig(**SMALL, share_embeddings=False), (9, 9)),
    ):
        assert apart.source is not apart.target


def test_an_output_layer_of_its_own_is_not_the_embedding():
    assert build(ModelConfig(**SMALL), (9, 9)).last is None
    assert build(ModelConfig(**SMALL, tie_output=False), (9, 7)).last.weight.shape == (7, 12)


@pytest.mark.parametrize(
    ("positions", "added", "within"),
    [
        ("sinusoidal", Sinusoidal, type(None)),
        ("learned", Learned, type(None)),
        ("rotary", type(None), Rotary),
        ("alibi", type(None), ALiBi),
    ],
)
def test_positions_go_where_they_belong(positions, added, within):
    model = build(ModelConfig(**SMALL, positions=positions), (9, 9))
    assert isinstance(model.source.positions, added)
    assert isinstance(model.decoder.layers[0].attention.positions, within)
    assert model.decoder.layers[0].cross.positions is None


def test_the_final_norm_belongs_to_pre_norm():
    assert build(ModelConfig(**SMALL), (9, 9)).encoder.norm is None
    assert build(ModelConfig(**SMALL, norm="pre"), (9, 9)).encoder.norm is not None


def test_kinds_are_told_apart():
    assert isinstance(build(ModelConfig(**SMALL), (9, 9)), Transformer)
    assert isinstance(build(ModelConfig(**SMALL, kind="recurrent"), (9, 9)), Recurrent)


def test_settings_that_do_not_fit_are_named():
    with pytest.raises(RegardError, match=r"under \[model\] do not fit: width must be a multiple"):
        build(ModelConfig(width=10, heads=3), (9, 9))
    with pytest.raises(RegardError, match="no attention score is called 'aditive'"):
        build(ModelConfig(**SMALL, score="aditive"), (9, 9))
