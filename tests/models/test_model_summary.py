"""Parameter counts."""

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
