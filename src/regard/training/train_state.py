"""Training state: the counters that a resumed run continues from."""

from dataclasses import asdict, dataclass, field
from typing import Any

from regard._support.text import count
from regard.config import TrainConfig
from regard.training.plan import TimePlan

MIN_PATIENCE_SHARE = 0.1  # of the planned steps, before a run with a time limit stops early


@dataclass
class TrainState:
    """Counters of a training run.

    Together with the parameters and the optimizer's state this is all that a checkpoint needs. No
    RNG state is saved: every step is seeded from its number.
    """

    step: int = 0  # optimizer steps taken
    epoch: int = 0
    batch_index: int = 0  # batches of this epoch that are done
    seconds: float = 0.0  # of training, over all starts
    max_steps: int = 0  # steps at which training ends; a time limit revises it
    plan: TimePlan | None = None  # of a run with a time limit
    tokens_since_validation: int = 0  # target tokens
    loss_sum: float = 0.0  # negative log-likelihood of these tokens
    best_metric: float | None = None  # lowest validation loss, or minus the highest BLEU
    best_step: int = 0
    bad_validations: int = 0  # since the best one
    validation_history: dict[str, float] = field(default_factory=dict)  # metric by step, as in JSON
    stop_reason: str = ""  # why training ended; empty until then

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "TrainState":
        """Return the state that `to_dict` returned."""
        plan = content.get("plan")
        return cls(**{**content, "plan": None if plan is None else TimePlan(**plan)})

    def to_dict(self) -> dict[str, Any]:
        """Return all counters as JSON represents them."""
        return asdict(self)

    @property
    def is_best(self) -> bool:
        """Whether the latest validation was the best so far."""
        return bool(self.validation_history) and self.bad_validations == 0

    def record_validation(self, metric: float, patience: int) -> None:
        """Record a validation, and stop early after `patience` validations without improvement.

        With a time limit they must also span a tenth of the planned steps: the loss often stagnates
        while the learning rate is high, and falls again as it decays.

        Args:
            metric: lower is better: the loss, or minus BLEU.
            patience: 0 disables early stopping.
        """
        self.validation_history[str(self.step)] = metric
        self.tokens_since_validation, self.loss_sum = 0, 0.0
        if self.best_metric is None or metric < self.best_metric:
            self.best_metric, self.best_step, self.bad_validations = metric, self.step, 0
        else:
            self.bad_validations += 1
        is_too_early = (
            self.plan is not None
            and self.step - self.best_step < MIN_PATIENCE_SHARE * self.max_steps
        )
        if patience and self.bad_validations >= patience and not is_too_early:
            validations = count(self.bad_validations, "validation")
            self.stop_reason = f"early stopping: no improvement in {validations}"

    def replan(self, config: TrainConfig) -> None:
        """Set `max_steps` and the schedule to what fits the time limit at the measured speed."""
        if self.plan is None or config.minutes is None:
            return
        limit = 60 * config.minutes
        validations = sorted(map(int, self.validation_history))
        frequency = len(validations) / validations[-1] if validations else 0.0
        steps_left = self.plan.steps_left(limit - self.seconds, limit, frequency)
        max_steps = max(self.step + steps_left, 1)
        self.plan.revise_schedule(self.step, self.max_steps, max_steps, config.warmup)
        self.max_steps = max_steps

    def end_if_time_is_up(self, config: TrainConfig) -> None:
        """Make this the last step if another one might exceed the time limit."""
        if self.plan is None or config.minutes is None:
            return
        limit = 60 * config.minutes
        if self.plan.is_time_up(limit - self.seconds, limit):
            self.max_steps = min(self.step, self.max_steps)

    def averaged_steps(self, config: TrainConfig) -> list[int]:
        """Return the steps for checkpoint averaging: the last validations, or the best ones."""
        steps = sorted(map(int, self.validation_history))  # JSON keys may be sorted as strings
        if config.average_which == "best":
            steps.sort(key=lambda step: self.validation_history[str(step)], reverse=True)
        return sorted(steps[-max(config.average_checkpoints, 1) :])
