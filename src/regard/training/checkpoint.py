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
    """The folder of weights (`weights-120.safetensors`) and states (`state-120.safetensors`).

    A state is written after its weights. So a state that can be read has all it needs.
    """

    folder: Path

    def weights_at(self, step: int) -> Path:
        """Name the weights of a step."""
        return self.folder / f"weights-{step}.safetensors"

    def state_at(self, step: int) -> Path:
        """Name the state of a step."""
        return self.folder / f"state-{step}.safetensors"

    def save(self, model: nn.Module, optimizer: torch.optim.Optimizer, progress: Progress) -> None:
        """Write where a training stands, and forget all states but this and the one before.

        Those of later steps are what a training left behind that had to go back, since they are
        torn.
        """
        parameters.save(self.weights_at(progress.step), parameters.of(model))
        state = _momenta(model, optimizer)
        parameters.save(self.state_at(progress.step), state, progress.to_dict())
        states = self.steps("state")
        kept = [step for step in states if step <= progress.step][-GENERATIONS:]
        for step in set(states) - {*kept}:
            self.state_at(step).unlink(missing_ok=True)

    def resume(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, warn: Callable[[str], None]
    ) -> Progress | None:
        """Put model and optimizer back to the last state that is whole; None if there is none."""
        files.sweep(self.folder)
        states = self.steps("state")
        for step in reversed(states):
            try:
                state, about = parameters.load(self.state_at(step))
                parameters.fill(
                    model, parameters.load(self.weights_at(step))[0], self.weights_at(step)
                )
            except RegardError as problem:
                before = "starting anew" if step == states[0] else "going back to the state before"
                warn(f"{problem}; {before}")
            else:
                _restore(model, optimizer, state)
                return Progress.from_dict(about)
        return None

    def steps(self, what: str) -> list[int]:
        """List the steps of which there are weights, or states, in order."""
        named = re.compile(rf"{what}-(\d+)\.safetensors")
        found = (named.fullmatch(path.name) for path in self.folder.glob("*.safetensors"))
        return sorted(int(match[1]) for match in found if match)

    def keep_weights(self, steps: Iterable[int]) -> None:
        """Forget all weights but those of these steps and of the states."""
        for step in set(self.steps("weights")) - {*steps, *self.steps("state")}:
            self.weights_at(step).unlink(missing_ok=True)


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
