"""Callbacks: observers of the training loop, and those that keep parameters.

The progress bar and the JSON log, also callbacks, are in `logging`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from torch import nn

from regard._support.checksums import Identity
from regard.runs import parameters
from regard.training.train_state import TrainState
from regard.training.validation import ValidationResult

FIRST_SNAPSHOT_STEP = 25  # each following snapshot is at twice the step of the one before


class StepResult(NamedTuple):
    """What one optimizer step computed."""

    loss: float  # negative log-likelihood per target token
    tokens: int  # target tokens, end of sentence included
    learning_rate: float


class Callback:
    """Observer of a training loop; subclasses override the events they need.

    `regard.train(callbacks=[...])` calls them in the main process only, in order. What they raise
    ends the training; the run stays resumable. A callback that sets `state.stop_reason` ends it as
    early stopping does, in all processes: the step is validated, and the run is finished.
    examples/tensorboard_logger.py is a callback.

    Example:
        >>> class StopAtLoss(Callback):
        ...     def on_step(self, state, result):
        ...         if result.loss < 0.5:
        ...             state.stop_reason = f"the loss of step {state.step} was {result.loss}"
        >>> state = TrainState(step=7)
        >>> StopAtLoss().on_step(state, StepResult(loss=0.25, tokens=100, learning_rate=1e-3))
        >>> state.stop_reason
        'the loss of step 7 was 0.25'
    """

    def on_start(self, state: TrainState) -> None:
        """Run before the first step of this start."""

    def on_step(self, state: TrainState, result: StepResult) -> None:
        """Run after every optimizer step."""

    def on_validation(self, state: TrainState, result: ValidationResult) -> None:
        """Run after every validation; `state.is_best` is whether it is the best so far."""

    def on_checkpoint(self, state: TrainState) -> None:
        """Run after a checkpoint was written."""

    def on_end(self, state: TrainState) -> None:
        """Run when the loop ends, also by an error.

        `state.stop_reason` says why; it is empty after an interruption or an error.
        """


class BestParameters(Callback):
    """Writes the parameters of the best validation, so that a run can be used while it trains."""

    def __init__(self, path: Path, model: nn.Module, identity: Identity | None = None) -> None:
        self.path, self.model, self.identity = path, model, identity or {}

    def on_validation(self, state: TrainState, result: ValidationResult) -> None:
        """Write the parameters if this validation is the best so far."""
        if state.is_best:
            identity = {**self.identity, "step": state.step}
            state_dict = parameters.state_of(self.model)
            parameters.save(self.path, state_dict, {"step": state.step}, identity)


class Snapshots(Callback):
    """Keeps the parameters of steps 0, 25, 50, 100, 200 … to show how they developed."""

    def __init__(
        self,
        path: Callable[[int], Path],
        model: nn.Module,
        first: int = FIRST_SNAPSHOT_STEP,
        identity: Identity | None = None,
    ) -> None:
        self.path, self.model, self.first = path, model, first
        self.identity = identity or {}

    def on_start(self, state: TrainState) -> None:
        """Keep the initial parameters."""
        if state.step == 0:
            self._save(0)

    def on_step(self, state: TrainState, result: StepResult) -> None:
        """Keep the parameters of steps first, 2 × first, 4 × first …"""
        multiple, remainder = divmod(state.step, self.first)
        is_power_of_two = multiple & (multiple - 1) == 0
        if remainder == 0 and is_power_of_two:
            self._save(state.step)

    def _save(self, step: int) -> None:
        identity = {**self.identity, "step": step}
        parameters.save(self.path(step), parameters.state_of(self.model), {"step": step}, identity)
