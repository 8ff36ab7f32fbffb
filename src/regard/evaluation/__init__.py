"""Evaluation: corpus metrics and the report on a trained translator."""

from regard.evaluation.report import evaluate as evaluate
