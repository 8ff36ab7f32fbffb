"""Validation: loss and BLEU on the validation pairs."""

from math import isfinite
from typing import NamedTuple

from regard.data import EncodedPairs
from regard.decoding import translate
from regard.evaluation import bleu, is_chinese, sum_nll
from regard.models import Seq2SeqModel
from regard.training.distributed import Distributed
from regard.training.objective import Objective
from regard.training.setup import TrainingData

MAX_TRANSLATED = 1000  # validation pairs to translate for BLEU and the model card


class ValidationResult(NamedTuple):
    """Metrics of one validation."""

    loss: float  # negative log-likelihood per target token
    bleu: float | None = None  # None unless it is the validation metric
    train_loss: float = 0.0  # mean since the last validation

    @property
    def metric(self) -> float:
        """What early stopping and selection minimize: the loss, or minus BLEU."""
        return self.loss if self.bleu is None else -self.bleu


def validate(objective: Objective, data: TrainingData, group: Distributed) -> ValidationResult:
    """Return the validation loss and, if it is the metric, BLEU; the model's mode is kept."""
    config = data.config.train
    loss = validation_loss(objective, data.valid, config.batch_tokens, group)
    if config.validation_metric == "loss" or not isfinite(loss):
        return ValidationResult(loss)
    (score,) = group.broadcast(validation_bleu(objective.model, data) if group.is_main else 0.0)
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


def translate_validation(model: Seq2SeqModel, data: TrainingData) -> tuple[list[str], list[str]]:
    """Return translations and references of the first validation pairs; the mode is kept."""
    pairs = [data.valid.pair(index) for index in range(min(len(data.valid), MAX_TRANSLATED))]
    was_training = model.training
    model.eval()
    sources = [source.tolist() for source, _ in pairs]
    results = translate(model, data.tokenizers, sources, data.config.search)
    model.train(was_training)
    references = [data.tokenizers.target.decode(target.tolist()) for _, target in pairs]
    return [best[0].text for best in results], references
