from torch import nn

from regard.config import ModelConfig
from regard.models import build, describe


def test_parts_are_counted_and_shared_numbers_once():
    model = build(ModelConfig(width=8, layers=1, heads=2, ffn_width=4), (10, 10))
    lines = dict(line.split() for line in describe(model).replace(",", "").splitlines())
    assert lines["source"] == "80"
    assert "target" not in lines
    assert int(lines["total"]) == sum(p.numel() for p in model.parameters())
    assert int(lines["total"]) == sum(int(n) for name, n in lines.items() if name != "total")


def test_numbers_stand_below_each_other():
    lines = describe(nn.Sequential(nn.Linear(100, 100), nn.Linear(1, 1))).splitlines()
    assert lines == ["0      10,100", "1           2", "total  10,102"]
