"""A worker of bench/train.py: regard trains, by its own loop, in turns.

    [torchrun --nproc-per-node 2] bench/train_regard.py RUN

The run folder has been prepared: settings, tokenizer, encoded pairs.
"""

import sys
from pathlib import Path
from typing import Any

import torch

from regard.config import RunConfig
from regard.data import Batch
from regard.models import build
from regard.runs import RunFolder
from regard.training import optim
from regard.training.distributed import Distributed, gathered
from regard.training.loop import Hooks, Training
from regard.training.objective import Objective
from regard.training.setup import Prepared, opened
from regard.training.state import Progress
from turns import Turns


def never(progress: Progress) -> float:
    """Stand for validations and states, of which there are none here."""
    raise AssertionError("no validation and no saving was planned")


def make(prepared: Prepared, crew: Distributed) -> Training:
    """Make what `regard train` makes of such settings."""
    settings: RunConfig = prepared.settings
    torch.manual_seed(settings.train.seed)
    model = build(settings.model, prepared.tokenizers.vocab_sizes)
    objective = Objective(model, settings.train.label_smoothing).train()
    moved_by = optim.build(model, settings.train, crew)
    progress = Progress(planned=settings.train.steps)
    hooks = Hooks(report=Held(objective, crew), validate=never, save=never)
    return Training(objective, moved_by, prepared.train, settings.train, progress, crew, hooks)


class Held:
    """Told of each step, it holds the process that leads until its turn; the others wait for it."""

    def __init__(self, objective: Objective, crew: Distributed) -> None:
        self.crew, self.cells = crew, 0
        objective.register_forward_pre_hook(self._count)
        self.turns = Turns() if crew.leads else None

    def __call__(self, entry: dict[str, Any]) -> None:
        """Tell of a step; end when there is no turn to come."""
        more = self.turns is None or self.turns.step(entry["tokens"], self.cells)
        self.cells = 0
        if not self.crew.tell([more])[0]:
            sys.exit()

    def _count(self, objective: Objective, arguments: tuple[Batch, ...]) -> None:
        # the other processes have as much, but for a pair
        self.cells += arguments[0].targets.numel() * self.crew.world


def main() -> None:
    """Train in turns."""
    folder = RunFolder(Path(sys.argv[1]))
    with gathered() as crew:
        training = make(opened(folder, folder.read_settings()[0]), crew)
        if crew.leads:
            weights = sum(weight.numel() for weight in training.objective.parameters())
            print(f"regard: {weights:,} weights", file=sys.stderr)
        training.run()


if __name__ == "__main__":
    main()
