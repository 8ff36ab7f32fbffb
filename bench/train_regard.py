"""A worker of bench/train.py: regard's own training loop, in turns.

    [torchrun --nproc-per-node 2] bench/train_regard.py RUN

The run folder was prepared by bench/train.py: settings, tokenizer, encoded pairs.
"""

import sys
from pathlib import Path
from typing import NoReturn

import torch

from regard._support.resources import keep_freed_memory
from regard.data import Batch
from regard.models import build
from regard.runs import RunFolder
from regard.training import Callback, StepResult, TrainingData, TrainState
from regard.training.distributed import Distributed, init_distributed
from regard.training.loop import TrainingLoop
from regard.training.objective import Objective
from regard.training.optim import build_optimizer
from regard.training.preparation import open_data
from turns import Turns


class TurnTaker(Callback):
    """Blocks the main process between turns; the others wait for its broadcast."""

    def __init__(self, objective: Objective, group: Distributed) -> None:
        self.group, self.positions = group, 0
        objective.register_forward_pre_hook(self._count)
        self.turns = Turns() if group.is_main else None

    def on_step(self, state: TrainState, result: StepResult) -> None:
        """Report a step; exit when there is no further turn."""
        goes_on = self.turns is None or self.turns.step(result.tokens, self.positions)
        self.positions = 0
        if not self.group.broadcast(float(goes_on))[0]:
            sys.exit()

    def _count(self, objective: Objective, arguments: tuple[Batch, ...]) -> None:
        # the shards of the other processes have the same size, up to one pair
        self.positions += arguments[0].targets.numel() * self.group.world_size


def never_validate() -> NoReturn:
    """Fail: the settings ask for no validation."""
    raise AssertionError("no validation was planned")


def make_loop(data: TrainingData, group: Distributed) -> TrainingLoop:
    """Build what `regard train` builds from such settings."""
    config = data.config.train
    torch.manual_seed(config.seed)
    model = build(data.config.model, data.tokenizers.vocab_sizes)
    objective = Objective(model, config.label_smoothing).train()
    return TrainingLoop(
        objective,
        build_optimizer(model, config, group),
        data.train,
        config,
        TrainState(max_steps=config.steps),
        group,
        validate=never_validate,
        callbacks=[TurnTaker(objective, group)],
    )


def main() -> None:
    """Train in turns."""
    folder = RunFolder(Path(sys.argv[1]))
    with init_distributed() as group, keep_freed_memory():
        loop = make_loop(open_data(folder, folder.read_settings()[0]), group)
        if group.is_main:
            count = sum(parameter.numel() for parameter in loop.objective.parameters())
            print(f"regard: {count:,} parameters", file=sys.stderr)
        loop.run()


if __name__ == "__main__":
    main()
