import pytest
import torch

from regard import presets
from regard.config import RunConfig
from regard.models import build
from regard.training.defaults import DEFAULTS_BY_SIZE, defaults_for_size

LIMITS = [limit for limit, _ in DEFAULTS_BY_SIZE]


@pytest.mark.parametrize("pairs", [0, 1, 9_999, 10_000, 99_999, 100_000, 500_000, 10**9])
def test_defaults_are_settings_that_exist_and_fit(pairs):
    settings = RunConfig.from_dict(defaults_for_size(pairs))
    assert settings.model.width % settings.model.heads == 0
    assert settings.train.warmup < settings.train.steps


def test_a_limit_belongs_to_the_larger_size():
    for number, limit in enumerate(LIMITS[:-1]):
        assert defaults_for_size(int(limit) - 1) is DEFAULTS_BY_SIZE[number][1]
        assert defaults_for_size(int(limit)) is DEFAULTS_BY_SIZE[number + 1][1]


def test_limits_rise_and_the_last_has_no_end():
    assert sorted(LIMITS) == LIMITS
    assert LIMITS[-1] == float("inf")


def test_more_text_gets_no_smaller_model():
    built = []
    for _, settings in DEFAULTS_BY_SIZE:
        model = RunConfig.from_dict(settings).model
        with torch.device("meta"):
            built.append(sum(weight.numel() for weight in build(model, (7, 7)).parameters()))
    assert built == sorted(built)
    for section, key in (("data", "vocab_size"), ("train", "steps"), ("train", "batch_tokens")):
        told = [settings[section][key] for _, settings in DEFAULTS_BY_SIZE]
        assert told == sorted(told), key
    dropouts = [settings["model"]["dropout"] for _, settings in DEFAULTS_BY_SIZE]
    assert dropouts == sorted(dropouts, reverse=True)


def test_so_many_pairs_as_multi30k_get_what_was_measured_with_them():
    """But for an early end, of which a measured run has none."""
    by_size = RunConfig.from_dict(defaults_for_size(29_000)).update({"train": {"patience": 0}})
    assert by_size == RunConfig.from_dict(presets.read("multi30k"))
