"""Checkpoints to resume from: parameters, optimizer state and counters."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard._support import files
from regard._support.checksums import Identity
from regard.errors import RegardError
from regard.runs import files_by_step, parameters
from regard.training.train_state import TrainState

MAX_STATES = 2  # if the latest is damaged, the one before is used


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Folder of parameters (`parameters-120.safetensors`) and states (`state-120.safetensors`).

    A state, the optimizer's and the counters, is written after its parameters: a state that can be
    read is complete. Parameters are kept longer than states, for checkpoint averaging.
    """

    folder: Path
    identity: Identity = field(default_factory=dict)  # the run and its tokenizers

    def parameters_path(self, step: int) -> Path:
        """Return the file of the parameters of a step."""
        return self.folder / f"parameters-{step}.safetensors"

    def state_path(self, step: int) -> Path:
        """Return the file of the state of a step."""
        return self.folder / f"state-{step}.safetensors"

    def save(self, model: nn.Module, optimizer: torch.optim.Optimizer, state: TrainState) -> None:
        """Write a checkpoint, and delete all states but this one and the one before.

        States of later steps are deleted, too: the run went back to before them because they were
        damaged.
        """
        identity = {**self.identity, "step": state.step}
        parameters.save(
            self.parameters_path(state.step), parameters.state_of(model), identity=identity
        )
        optimizer_state = _optimizer_state(model, optimizer)
        parameters.save(self.state_path(state.step), optimizer_state, state.to_dict(), identity)
        steps = self.state_steps()
        latest = [step for step in steps if step <= state.step][-MAX_STATES:]
        for step in set(steps) - {*latest}:
            self.state_path(step).unlink(missing_ok=True)

    def resume(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, warn: Callable[[str], None]
    ) -> TrainState | None:
        """Load the latest undamaged checkpoint into model and optimizer.

        Returns:
            Its counters, or None if there is no checkpoint.
        """
        files.remove_temps(self.folder)
        steps = self.state_steps()
        for step in reversed(steps):
            path, identity = self.parameters_path(step), {**self.identity, "step": step}
            try:
                optimizer_state, counters = parameters.load(self.state_path(step), identity)
                state = _parse_counters(self.state_path(step), counters)
                _check_optimizer_state(self.state_path(step), model, optimizer_state)
                parameters.load_into(model, parameters.load(path, identity)[0], path)
            except RegardError as problem:
                fallback = "step 0" if step == steps[0] else "the checkpoint before it"
                warn(f"{problem}; resuming from {fallback}")
            else:
                _restore_optimizer(model, optimizer, optimizer_state)
                return state
        return None

    def parameter_steps(self) -> list[int]:
        """Return the steps whose parameters are on disk, in order."""
        return list(files_by_step(self.folder, "parameters"))

    def state_steps(self) -> list[int]:
        """Return the steps whose state is on disk, in order."""
        return list(files_by_step(self.folder, "state"))

    def keep_parameters(self, steps: Iterable[int]) -> None:
        """Delete all parameters but those of these steps and of the states."""
        for step in set(self.parameter_steps()) - {*steps, *self.state_steps()}:
            self.parameters_path(step).unlink(missing_ok=True)


def _parse_counters(path: Path, counters: dict[str, Any]) -> TrainState:
    try:
        return TrainState.from_dict(counters)
    except TypeError as error:  # other fields than those of this version
        raise RegardError(f"{path} is damaged: {error}") from error


def _check_optimizer_state(path: Path, model: nn.Module, state: dict[str, Tensor]) -> None:
    """Raise unless all tensors are of the model's parameters, and finite."""
    by_name = dict(model.named_parameters())
    for label, value in state.items():
        name, _, key = label.rpartition("/")
        fits = name in by_name and (key == "step" or value.shape == by_name[name].shape)
        if not fits or not value.isfinite().all():
            raise RegardError(f"{path} does not match the run: {label!r} is not of its optimizer")


def _optimizer_state(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the optimizer's tensors, named after their parameter: `encoder.weight/exp_avg`."""
    return {
        f"{name}/{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def _restore_optimizer(
    model: nn.Module, optimizer: torch.optim.Optimizer, state: dict[str, Tensor]
) -> None:
    by_name = dict(model.named_parameters())
    for label, value in state.items():
        name, _, key = label.rpartition("/")
        parameter = by_name[name]
        is_host_counter = key == "step" and not optimizer.defaults.get("fused")
        device = torch.device("cpu") if is_host_counter else parameter.device
        optimizer.state[parameter][key] = value.to(device)
