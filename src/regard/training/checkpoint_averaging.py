"""Checkpoint averaging, and selection of the final parameters: the average or the best one."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from regard.errors import RegardError
from regard.runs import RunFolder, parameters
from regard.training.checkpoint import Checkpoints
from regard.training.distributed import Distributed
from regard.training.objective import Objective
from regard.training.preparation import TrainingData
from regard.training.train_state import TrainState
from regard.training.validation import ValidationResult, validate


class SelectedParameters(NamedTuple):
    """The parameters that were selected."""

    name: str  # "step 8", or "average of steps 4 and 8"
    result: ValidationResult


def select_parameters(
    folder: RunFolder,
    data: TrainingData,
    objective: Objective,
    state: TrainState,
    warn: Callable[[str], None],
) -> SelectedParameters:
    """Load the parameters that validate best into the model: the average or the best checkpoint."""
    candidates = _candidates(folder, data, state, warn)
    group = Distributed(device=next(objective.parameters()).device)  # the main process alone
    results = {}
    for name, paths in candidates.items():
        average = parameters.average(paths, data.identity)
        parameters.load_into(objective.model, average, folder.checkpoints)
        results[name] = validate(objective, data, group)
    best = min(results, key=lambda name: results[name].metric)
    average = parameters.average(candidates[best], data.identity)
    parameters.load_into(objective.model, average, folder.checkpoints)
    return SelectedParameters(best, results[best])


def _candidates(
    folder: RunFolder, data: TrainingData, state: TrainState, warn: Callable[[str], None]
) -> dict[str, list[Path]]:
    """Return the files to average for each candidate, by name."""
    checkpoints = Checkpoints(folder.checkpoints)

    def is_intact(step: int) -> bool:
        try:
            parameters.load(checkpoints.parameters_path(step), {**data.identity, "step": step})
        except RegardError as problem:
            warn(f"{problem}; continuing without it")
            return False
        return True

    steps = [step for step in state.averaged_steps(data.config.train) if is_intact(step)]
    has_best = state.best_step in steps or is_intact(state.best_step)
    # the run's own file also holds the parameters of the best validation
    best = checkpoints.parameters_path(state.best_step) if has_best else folder.model
    candidates = {f"step {state.best_step}": [best]}
    if len(steps) > 1:
        name = f"average of steps {', '.join(map(str, steps[:-1]))} and {steps[-1]}"
        candidates[name] = [checkpoints.parameters_path(step) for step in steps]
    return candidates
