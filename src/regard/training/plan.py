"""Plan of a run with a time limit: how many steps fit, of which warm-up, revised as it trains.

The time limit covers the estimate before the first step, all steps, validations and checkpoints,
the selection of the final parameters and the model card; it does not cover reading the corpus,
training the tokenizers and encoding, which come before. A resumed run has the time that is left.
"""

from dataclasses import dataclass
from math import ceil

from regard._support.text import count

WARMUP_SHARE = 0.1  # of the planned steps, at most
SELECTION_VALIDATIONS = 2  # the best checkpoint, and the average of several
CARD_SHARE = 0.02  # of the time limit, for the translations in the model card
SPEED_WINDOW_STEPS = 30  # the mean duration of a step is that of about as many
STEP_MARGIN = 2.0  # a step is only started if this many of them would fit
MIN_USEFUL_STEPS = 1000  # below it, a model learns frequent words and little else


@dataclass
class TimePlan:
    """Learning rate schedule and measured durations of a run with a time limit.

    The schedule is a function of a phase, which rises from 0 to 1 during the warm-up and from 1 to
    2 during the decay. A revision of the plan changes how fast the phase rises from there on, so
    the learning rate never jumps.

    Example:
        >>> plan = TimePlan(warmup=10)
        >>> plan.phase(5, max_steps=110), plan.phase(60, max_steps=110)
        (0.5, 1.5)
        >>> plan.revise_schedule(60, old_max_steps=110, max_steps=70, warmup=10)
        >>> plan.phase(60, max_steps=70), plan.phase(65, max_steps=70)
        (1.5, 1.75)
    """

    warmup: int = 1  # step at which the warm-up ends
    anchor_step: int = 0  # of the latest revision
    anchor_phase: float = 0.0  # phase of that step
    step_seconds: float = 0.0  # running mean
    validation_seconds: float = 0.0  # of the latest validation
    checkpoint_seconds: float = 0.0  # of the slowest checkpoint
    has_warned: bool = False  # of too few steps

    def phase(self, step: int, max_steps: int) -> float:
        """Return the phase of a step, at or after the latest revision."""
        done = step - self.anchor_step
        if self.anchor_phase < 1:
            if step < self.warmup:
                share = done / (self.warmup - self.anchor_step)
                return self.anchor_phase + (1 - self.anchor_phase) * share
            return min(1 + (step - self.warmup) / max(max_steps - self.warmup, 1), 2.0)
        share = done / max(max_steps - self.anchor_step, 1)
        return min(self.anchor_phase + (2 - self.anchor_phase) * share, 2.0)

    def revise_schedule(self, step: int, old_max_steps: int, max_steps: int, warmup: int) -> None:
        """Plan the steps after this one: the rest of the warm-up, then decay to `max_steps`.

        Args:
            step: steps taken.
            old_max_steps: planned end so far.
            max_steps: planned end from now on.
            warmup: `train.warmup`; the plan spends at most a tenth of its steps on it.
        """
        phase = self.phase(step, old_max_steps)
        self.anchor_step, self.anchor_phase = step, phase
        if phase < 1:
            length = min(warmup, max_steps * WARMUP_SHARE)
            self.warmup = step + ceil((1 - phase) * length)
            if self.warmup == step:  # no warm-up is left
                self.anchor_phase = 1.0

    def record_step(self, step: int, seconds: float, pause_seconds: float = 0.0) -> None:
        """Record the duration of a step, counted from 1, and of the checkpoint before it.

        Measurements replace the estimate, but for the first step, which may compile or allocate.
        """
        if step > 1:
            weight = max(1 / (step - 1), 1 / SPEED_WINDOW_STEPS)
            self.step_seconds += weight * (seconds - self.step_seconds)
        self.checkpoint_seconds = max(self.checkpoint_seconds, pause_seconds)

    def reserve(self, limit: float) -> float:
        """Return the seconds to keep for the last validation, the selection and the card."""
        measured = self.validation_seconds + self.checkpoint_seconds
        return (1 + SELECTION_VALIDATIONS) * measured + CARD_SHARE * limit

    def steps_left(self, seconds_left: float, limit: float, validations_per_step: float) -> int:
        """Return how many steps fit into the seconds left of a limit, with their validations."""
        usable = seconds_left - self.reserve(limit) - STEP_MARGIN * self.step_seconds
        per_step = self.step_seconds + validations_per_step * self.validation_seconds
        return max(int(usable / max(per_step, 1e-9)), 0)

    def warning(self, max_steps: int, minutes: float) -> str | None:
        """Return a warning the first time that too few steps to learn are planned."""
        if self.has_warned or max_steps >= MIN_USEFUL_STEPS:
            return None
        self.has_warned = True
        needed = max(ceil(1.1 * minutes * MIN_USEFUL_STEPS / max(max_steps, 1)), 1)
        return (
            f"warning: about {count(max_steps, 'step')} fit into {count(minutes, 'minute')}, but a "
            f"translation model needs about {MIN_USEFUL_STEPS:,} to learn more than frequent "
            f"words; {count(needed, 'minute')} would do at this speed"
        )

    def is_time_up(self, seconds_left: float, limit: float) -> bool:
        """Return whether another step might not fit."""
        return seconds_left < self.reserve(limit) + STEP_MARGIN * self.step_seconds
