"""Checkpoints to resume from: parameters, optimizer state and counters."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from regard._support import files
from regard.errors import RegardError
from regard.runs import parameters
from regard.training.state import TrainState

MAX_STATES = 2  # if the latest is damaged, the one before is used


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Folder of parameters (`parameters-120.safetensors`) and states (`state-120.safetensors`).

    A state, the optimizer's and the counters, is written after its parameters: a state that can be
    read is complete. Parameters are kept longer than states, for checkpoint averaging.
    """

    folder: Path

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
        parameters.save(self.parameters_path(state.step), parameters.state_of(model))
        optimizer_state = _optimizer_state(model, optimizer)
        parameters.save(self.state_path(state.step), optimizer_state, state.to_dict())
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
            path = self.parameters_path(step)
            try:
                optimizer_state, counters = parameters.load(self.state_path(step))
                parameters.load_into(model, parameters.load(path)[0], path)
            except RegardError as problem:
                fallback = "step 0" if step == steps[0] else "the checkpoint before it"
                warn(f"{problem}; resuming from {fallback}")
            else:
                _restore_optimizer(model, optimizer, optimizer_state)
                return TrainState.from_dict(counters)
        return None

    def parameter_steps(self) -> list[int]:
        """Return the steps whose parameters are on disk, in order."""
        return self._steps("parameters")

    def state_steps(self) -> list[int]:
        """Return the steps whose state is on disk, in order."""
        return self._steps("state")

    def keep_parameters(self, steps: Iterable[int]) -> None:
        """Delete all parameters but those of these steps and of the states."""
        for step in set(self.parameter_steps()) - {*steps, *self.state_steps()}:
            self.parameters_path(step).unlink(missing_ok=True)

    def _steps(self, prefix: str) -> list[int]:
        pattern = re.compile(rf"{prefix}-(\d+)\.safetensors")
        matches = (pattern.fullmatch(path.name) for path in self.folder.glob("*.safetensors"))
        return sorted(int(match[1]) for match in matches if match)


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
