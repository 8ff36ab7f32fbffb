import pytest
import torch

from regard import presets
from regard.config import RunConfig
from regard.models import build
from regard.training.defaults import DEFAULTS_BY_SIZE, defaults_for_size

LIMITS = [limit for limit, _ in DEFAULTS_BY_SIZE]


@pytest.mark.parametrize("num_pairs", [0, 1, 9_999, 10_000, 99_999, 100_000, 500_000, 10**9])
def test_defaults_are_valid_settings(num_pairs):
    config = RunConfig.from_dict(defaults_for_size(num_pairs))
    assert config.model.width % config.model.heads == 0
    assert config.train.warmup < config.train.steps


def test_limit_belongs_to_the_larger_size():
    for index, limit in enumerate(LIMITS[:-1]):
        assert defaults_for_size(int(limit) - 1) is DEFAULTS_BY_SIZE[index][1]
        assert defaults_for_size(int(limit)) is DEFAULTS_BY_SIZE[index + 1][1]


def test_limits_rise_to_infinity():
    assert sorted(LIMITS) == LIMITS
    assert LIMITS[-1] == float("inf")


def test_larger_corpus_gets_no_smaller_model():
    sizes = []
    for _, settings in DEFAULTS_BY_SIZE:
        model = RunConfig.from_dict(settings).model
        with torch.device("meta"):
            sizes.append(sum(parameter.numel() for parameter in build(model, 7).parameters()))
    assert sizes == sorted(sizes)
    for section, key in (("data", "vocab_size"), ("train", "steps"), ("train", "batch_tokens")):
        values = [settings[section][key] for _, settings in DEFAULTS_BY_SIZE]
        assert values == sorted(values), key
    dropouts = [settings["model"]["dropout"] for _, settings in DEFAULTS_BY_SIZE]
    assert dropouts == sorted(dropouts, reverse=True)


def test_defaults_for_the_size_of_multi30k_equal_the_measured_preset():
    """Except for early stopping, which a measured run does without."""
    by_size = RunConfig.from_dict(defaults_for_size(29_000)).update({"train": {"patience": 0}})
    assert by_size == RunConfig.from_dict(presets.read("multi30k"))
