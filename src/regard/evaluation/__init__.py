"""Evaluation: corpus metrics and the report on a trained translator."""
