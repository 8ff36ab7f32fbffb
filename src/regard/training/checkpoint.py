"""States that a killed training goes on from: weights and optimizer, two generations of each."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from regard._support import files
from regard.errors import RegardError
from regard.runs import parameters
from regard.training.state import Progress

GENERATIONS = 2  # states kept: if the last is torn, the one before is used


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The folder of weights (`parameters-120.safetensors`) and states (`state-120.safetensors`).

    A state is written after its weights. So a state that can be read has all it needs.
    """

    folder: Path

    def parameters_path(self, step: int) -> Path:
        """Name the weights of a step."""
        return self.folder / f"parameters-{step}.safetensors"

    def state_path(self, step: int) -> Path:
        """Name the state of a step."""
        return self.folder / f"state-{step}.safetensors"

    def save(self, model: nn.Module, optimizer: torch.optim.Optimizer, progress: Progress) -> None:
        """Write where a training stands, and forget all states but this and the one before.

        Those of later steps are what a training left behind that had to go back, since they are
        torn.
        """
        parameters.save(self.parameters_path(progress.step), parameters.state_of(model))
        state = _momenta(model, optimizer)
        parameters.save(self.state_path(progress.step), state, progress.to_dict())
        states = self.state_steps()
        kept = [step for step in states if step <= progress.step][-GENERATIONS:]
        for step in set(states) - {*kept}:
            self.state_path(step).unlink(missing_ok=True)

    def resume(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, warn: Callable[[str], None]
    ) -> Progress | None:
        """Put model and optimizer back to the last state that is whole; None if there is none."""
        files.remove_temps(self.folder)
        states = self.state_steps()
        for step in reversed(states):
            try:
                state, about = parameters.load(self.state_path(step))
                parameters.load_into(
                    model,
                    parameters.load(self.parameters_path(step))[0],
                    self.parameters_path(step),
                )
            except RegardError as problem:
                before = "starting anew" if step == states[0] else "going back to the state before"
                warn(f"{problem}; {before}")
            else:
                _restore(model, optimizer, state)
                return Progress.from_dict(about)
        return None

    def parameter_steps(self) -> list[int]:
        """Return the steps whose parameters are on disk, in order."""
        return self._steps("parameters")

    def state_steps(self) -> list[int]:
        """Return the steps whose optimizer state is on disk, in order."""
        return self._steps("state")

    def _steps(self, prefix: str) -> list[int]:
        named = re.compile(rf"{prefix}-(\d+)\.safetensors")
        found = (named.fullmatch(path.name) for path in self.folder.glob("*.safetensors"))
        return sorted(int(match[1]) for match in found if match)

    def keep_parameters(self, steps: Iterable[int]) -> None:
        """Forget all weights but those of these steps and of the states."""
        for step in set(self.parameter_steps()) - {*steps, *self.state_steps()}:
            self.parameters_path(step).unlink(missing_ok=True)


def _momenta(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    return {
        f"{name}/{key}": value
        for name, weight in model.named_parameters()
        for key, value in optimizer.state.get(weight, {}).items()
    }


def _restore(model: nn.Module, optimizer: torch.optim.Optimizer, state: dict[str, Tensor]) -> None:
    named = dict(model.named_parameters())
    for label, value in state.items():
        name, _, key = label.rpartition("/")
        weight = named[name]
        where = "cpu" if key == "step" and not optimizer.defaults.get("fused") else weight.device
        optimizer.state[weight][key] = value.to(where)
