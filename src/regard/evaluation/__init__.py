"""Evaluation of translations.

`metrics` scores texts against references, `likelihood` scores references under a model (training
validates with it, too), and `report` is the table of both that `Run.evaluate` returns.
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
from regard.evaluation.report import AlignmentReport, EvaluationReport

__all__ = [
    "AlignmentReport",
    "EvaluationReport",
    "MetricScore",
    "bleu",
    "corpus_alignment_error_rate",
    "corpus_scores",
    "exact_match",
    "is_chinese",
    "perplexity",
    "sum_nll",
    "teacher_forced_nll",
]
