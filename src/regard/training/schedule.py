"""The learning rate of each step."""

from math import cos, pi, sqrt

from regard.config import TrainConfig


def rate(step: int, settings: TrainConfig, steps: int | None = None) -> float:
    """Give the rate of a step, counted from 1: a climb to the peak, then what the schedule says.

    Args:
        steps: how many are planned, where a time box has changed the settings' own.
    """
    warmup, planned = max(settings.warmup, 1), steps or settings.steps
    if step < warmup:
        return settings.learning_rate * step / warmup
    if settings.schedule == "inverse_sqrt":
        return settings.learning_rate * sqrt(warmup / step)
    if settings.schedule == "cosine":
        done = min((step - warmup) / max(planned - warmup, 1), 1.0)
        return settings.learning_rate * (1 + cos(pi * done)) / 2
    return settings.learning_rate
