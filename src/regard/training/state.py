"""Training state: the counters that a resumed run continues from."""

from dataclasses import asdict, dataclass, field
from typing import Any

from regard.config import TrainConfig


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
        return cls(**content)

    def to_dict(self) -> dict[str, Any]:
        """Return all counters as JSON represents them."""
        return asdict(self)

    @property
    def is_best(self) -> bool:
        """Whether the latest validation was the best so far."""
        return bool(self.validation_history) and self.bad_validations == 0

    def record_validation(self, metric: float, patience: int) -> None:
        """Record a validation, and stop early after `patience` validations without improvement.

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
        if patience and self.bad_validations >= patience:
            validations = "1 validation" if patience == 1 else f"{patience} validations"
            self.stop_reason = f"early stopping: no improvement in {validations}"

    def replan(self, minutes: float | None) -> None:
        """Set `max_steps` to what fits the time limit at the speed so far."""
        if minutes is not None and self.step:
            seconds_left = max(minutes * 60 - self.seconds, 0.0)
            self.max_steps = self.step + round(seconds_left * self.step / max(self.seconds, 1e-9))

    def averaged_steps(self, config: TrainConfig) -> list[int]:
        """Return the steps for checkpoint averaging: the last validations, or the best ones."""
        steps = sorted(map(int, self.validation_history))  # JSON keys may be sorted as strings
        if config.average_which == "best":
            steps.sort(key=lambda step: self.validation_history[str(step)], reverse=True)
        return sorted(steps[-max(config.average_checkpoints, 1) :])
