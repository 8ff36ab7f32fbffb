from math import inf
from types import SimpleNamespace

import pytest

from regard.decoding import translate
from regard.models import build
from regard.training import ValidationResult, validation
from regard.training.distributed import Distributed
from regard.training.objective import Objective
from regard.training.validation import translate_validation, validate

pytestmark = pytest.mark.usefixtures("unchecked")


def make_objective(data):
    return Objective(build(data.config.model, data.tokenizers.vocab_sizes)).train()


def test_metric_is_the_loss_or_minus_bleu():
    assert ValidationResult(1.5).metric == 1.5
    assert ValidationResult(1.5, 30.0).metric == -30.0


@pytest.mark.parametrize("metric", ["loss", "bleu"])
def test_bleu_is_computed_only_if_it_is_the_metric(make_data, metric):
    data = make_data({"train": {"validation_metric": metric}, "search": {"beam_size": 1}})
    objective = make_objective(data)
    result = validate(objective, data, Distributed())
    assert result.loss > 0
    assert (result.bleu is not None) == (metric == "bleu")
    assert objective.training and objective.model.training


def test_diverged_model_is_not_translated_with(make_data):
    data = make_data({"train": {"validation_metric": "bleu"}})
    objective = make_objective(data)
    next(objective.parameters()).data.fill_(float("nan"))
    result = validate(objective, data, Distributed())
    assert result.bleu is None and result.loss != result.loss


def test_validation_pairs_are_translated_in_order(make_data):
    data = make_data({"search": {"beam_size": 1}})
    model = make_objective(data).model
    translations, references = translate_validation(model, data)
    assert len(translations) == len(references) == len(data.valid) == 20
    assert all(reference.startswith("le ") for reference in references)
    assert model.training


@pytest.mark.train
@pytest.mark.parametrize(("seconds", "translated"), [(inf, 20), (100.0, 20), (9.0, 10), (0.0, 5)])
def test_translation_for_the_card_ends_before_a_time_limit(
    make_data, monkeypatch, seconds, translated
):
    """Each part of five pairs takes three seconds; after two, a third might take 4.5."""
    data, now = make_data(), [0.0]

    def slow_translate(*arguments):
        now[0] += 3.0
        return translate(*arguments)

    monkeypatch.setattr(validation, "translate", slow_translate)
    monkeypatch.setattr(validation, "PART_SIZE", 5)
    monkeypatch.setattr(validation, "time", SimpleNamespace(monotonic=lambda: now[0]))
    model = build(data.config.model, data.tokenizers.vocab_sizes)
    texts, references = translate_validation(model, data, seconds)
    assert len(texts) == len(references) == translated
