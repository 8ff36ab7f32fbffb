"""Parameter counts."""

import pytest
from torch import nn

from regard.config import ModelConfig
from regard.models import build, summary


def test_summary_counts_each_submodule_and_shared_parameters_once():
    model = build(ModelConfig(width=8, layers=1, heads=2, ffn_width=4), 10)
    counts = dict(line.split() for line in summary(model).replace(",", "").splitlines())
    assert counts["source_embedding"] == "80"
    assert "target_embedding" not in counts
    assert int(counts["total"]) == sum(p.numel() for p in model.parameters())
    assert int(counts["total"]) == sum(int(n) for name, n in counts.items() if name != "total")


def test_summary_aligns_its_columns():
    lines = summary(nn.Sequential(nn.Linear(100, 100), nn.Linear(1, 1))).splitlines()
    assert lines == ["0      10,100", "1           2", "total  10,102"]


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"heads": 4}, "heads=4, key_heads=4, head_width=2"),
        ({"heads": 4, "key_heads": 2}, "heads=4, key_heads=2, head_width=2"),
        ({"norm": "pre"}, "pre_norm=True"),
        ({"dropout": 0.25}, "width=8, dropout=0.25"),
        ({"inner_dropout": 0.5}, "activation='relu', dropout=0.5"),
        ({"positions": "sinusoidal"}, "Sinusoidal(width=8, base=10000.0)"),
        ({"positions": "learned", "max_positions": 9}, "Learned(length=9, width=8)"),
        ({"positions": "rotary"}, "Rotary(width=4, base=10000.0, interleaved=False)"),
        ({"positions": "alibi"}, "ALiBi(heads=2)"),
    ],
)
def test_repr_of_a_model_shows_what_its_parameters_do_not(changes, shown):
    config = ModelConfig(**{"width": 8, "layers": 1, "heads": 2, "ffn_width": 4} | changes)
    assert shown in repr(build(config, 10))
