"""How far a training has come: all that is needed to go on as if nothing had happened."""

from dataclasses import asdict, dataclass, field
from typing import Any

from regard.config import TrainConfig


@dataclass
class Progress:
    """Counters of a training under way. Chance needs none: each step is seeded by its number."""

    step: int = 0  # updates done
    epoch: int = 0
    place: int = 0  # batches of this epoch done
    seconds: float = 0.0  # of training, over all starts
    planned: int = 0  # steps; a time box may change it as it goes
    told: int = 0  # target tokens since the last validation, and their loss
    lost: float = 0.0
    best: float | None = None  # the least loss, or minus the greatest BLEU
    best_step: int = 0
    waited: int = 0  # validations since the best
    judged: dict[str, float] = field(default_factory=dict)  # by step, as JSON has it
    finished: str = ""  # why it ended, once it has

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Progress":
        """Read what `to_dict` gave."""
        return cls(**content)

    def to_dict(self) -> dict[str, Any]:
        """Give all counters, to be saved."""
        return asdict(self)

    def judge(self, figure: float, settings: TrainConfig) -> bool:
        """Take a validation into account; say whether it is the best so far."""
        self.judged[str(self.step)] = figure
        better = self.best is None or figure < self.best
        if better:
            self.best, self.best_step, self.waited = figure, self.step, 0
        else:
            self.waited += 1
        if settings.patience and self.waited >= settings.patience:
            self.finished = f"no progress in {self.waited} validations"
        return better

    def replan(self, settings: TrainConfig) -> None:
        """Plan as many steps as the time box has room for, at the speed so far."""
        if settings.minutes is not None and self.step:
            left = max(settings.minutes * 60 - self.seconds, 0.0)
            self.planned = self.step + round(left * self.step / max(self.seconds, 1e-9))

    def averaged(self, settings: TrainConfig) -> list[int]:
        """Name the steps whose weights are averaged: the last validations, or the best ones."""
        steps = sorted(map(int, self.judged))  # a file may have them in the order of words
        if settings.average_which == "best":
            steps.sort(key=lambda step: self.judged[str(step)], reverse=True)
        return sorted(steps[-max(settings.average_checkpoints, 1) :])
