"""Evaluation of translations and of trained runs.

`metrics` scores texts against references, `likelihood` scores references under a model (training
validates with it, too), and `report` evaluates a run on a test set with both.
"""

from regard.evaluation.likelihood import sum_nll, teacher_forced_nll
from regard.evaluation.metrics import (
    MetricScore,
    bleu,
    corpus_alignment_error_rate,
    corpus_scores,
    exact_match,
    is_chinese,
    perplexity,
)
from regard.evaluation.report import AlignmentReport, EvaluationReport, evaluate

__all__ = [
    "AlignmentReport",
    "EvaluationReport",
    "MetricScore",
    "bleu",
    "corpus_alignment_error_rate",
    "corpus_scores",
    "evaluate",
    "exact_match",
    "is_chinese",
    "perplexity",
    "sum_nll",
    "teacher_forced_nll",
]
