"""Training loops over a tiny model, and a recorder of their events."""

import torch

from regard.models import build
from regard.training import Callback, TrainState, ValidationResult
from regard.training.distributed import Distributed
from regard.training.loop import TrainingLoop
from regard.training.objective import Objective


class Recorder(Callback):
    """Records every event."""

    def __init__(self):
        self.events, self.steps = [], []

    def on_start(self, state):
        self.events.append(("start", state.step))

    def on_step(self, state, result):
        self.steps.append(result)
        self.events.append(("step", state.step))

    def on_validation(self, state, result):
        self.events.append(("validation", state.step))

    def on_checkpoint(self, state):
        self.events.append(("checkpoint", state.step))

    def on_end(self, state):
        self.events.append(("end", state.step))

    def steps_of(self, event):
        return [step for name, step in self.events if name == event]


def make_loop(
    data,
    group=None,
    validate=None,
    should_stop=lambda: False,
    checkpoints=None,
    state=None,
    clock=None,
    **train,
):
    """Return a loop over a model without dropout, and the recorder of its events."""
    torch.manual_seed(0)
    config = data.config.update({"train": train})
    model = build(config.model, data.tokenizers.vocab_sizes)
    for part in model.modules():
        if hasattr(part, "dropout"):
            part.dropout = 0.0
    recorder = Recorder()
    loop = TrainingLoop(
        Objective(model, 0.1).train(),
        torch.optim.AdamW(model.parameters(), eps=1e-9),
        data.train,
        config.train,
        state or TrainState(max_steps=config.train.steps),
        group or Distributed(),
        validate=validate or (lambda: ValidationResult(1.0)),
        checkpoints=checkpoints,
        callbacks=[recorder],
        should_stop=should_stop,
        clock=clock,
    )
    return loop, recorder
