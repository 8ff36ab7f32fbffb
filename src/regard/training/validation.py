"""Validation: loss and BLEU on the validation pairs."""

import time
from math import inf, isfinite
from typing import NamedTuple

from regard.data import EncodedPairs
from regard.decoding import translate
from regard.evaluation import bleu, is_chinese, sum_nll
from regard.models import Seq2SeqModel
from regard.training.distributed import Distributed
from regard.training.objective import Objective
from regard.training.preparation import TrainingData

MAX_TRANSLATED = 1000  # validation pairs to translate for BLEU and the model card
PART_SIZE = 50  # pairs to translate at once where time is limited
PART_MARGIN = 1.5  # a part may take this much longer than the one before


class ValidationResult(NamedTuple):
    """Metrics of one validation."""

    loss: float  # negative log-likelihood per target token
    bleu: float | None = None  # None unless it is the validation metric
    train_loss: float = 0.0  # mean since the last validation

    @property
    def metric(self) -> float:
        """What early stopping and selection minimize: the loss, or minus BLEU."""
        return self.loss if self.bleu is None else -self.bleu


def validate(
    objective: Objective,
    data: TrainingData,
    group: Distributed,
    model: Seq2SeqModel | None = None,
) -> ValidationResult:
    """Return the validation loss and, if it is the metric, BLEU; the model's mode is kept.

    Args:
        objective: the model with its loss.
        data: the validation pairs and the settings.
        group: the processes.
        model: a complete model to translate with, if the objective's is sharded.
    """
    config = data.config.train
    loss = validation_loss(objective, data.valid, config.batch_tokens, group)
    if config.validation_metric == "loss" or not isfinite(loss):
        return ValidationResult(loss)
    (score,) = group.broadcast(
        validation_bleu(model or objective.model, data) if group.is_main else 0.0
    )
    return ValidationResult(loss, score)


def validation_loss(
    objective: Objective, pairs: EncodedPairs, batch_tokens: int, group: Distributed
) -> float:
    """Return the negative log-likelihood per target token, sharded over the processes."""
    was_training = objective.training
    objective.eval()
    nll, tokens = sum_nll(
        lambda batch: objective(batch).nll,
        pairs,
        batch_tokens,
        group.device,
        rank=group.rank,
        world_size=group.world_size,
    )
    objective.train(was_training)
    total_nll, total_tokens = group.all_reduce(nll, float(tokens))
    return total_nll / total_tokens


def validation_bleu(model: Seq2SeqModel, data: TrainingData) -> float:
    """Return the BLEU of the translated validation pairs."""
    translations, references = translate_validation(model, data)
    return bleu(translations, references, chinese=is_chinese(references))


def translate_validation(
    model: Seq2SeqModel, data: TrainingData, seconds: float = inf
) -> tuple[list[str], list[str]]:
    """Return translations and references of the first validation pairs; the mode is kept.

    Args:
        model: the model to translate with.
        data: validation pairs, tokenizers and search settings.
        seconds: time limit; pairs are translated in parts until another might exceed it.
    """
    pairs = [data.valid.pair(index) for index in range(min(len(data.valid), MAX_TRANSLATED))]
    part_size = MAX_TRANSLATED if seconds == inf else PART_SIZE
    was_training = model.training
    model.eval()
    start, translations = time.monotonic(), list[str]()
    for first in range(0, len(pairs), part_size):
        part_start = time.monotonic()
        sources = [source.tolist() for source, _ in pairs[first : first + part_size]]
        results = translate(model, data.tokenizers, sources, data.config.search)
        translations += [best[0].text for best in results]
        now = time.monotonic()
        if now - start + PART_MARGIN * (now - part_start) > seconds:
            break
    model.train(was_training)
    references = [
        data.tokenizers.target.decode(target.tolist()) for _, target in pairs[: len(translations)]
    ]
    return translations, references
