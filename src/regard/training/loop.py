"""The training loop: batch, loss, backward, clip, optimizer step, log, validate, checkpoint."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import inf, isfinite, isnan
from typing import NamedTuple

import torch
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad_norm_

from regard.config import MAX_SEED, TrainConfig
from regard.data import Batch, EncodedPairs, Indices, batch_by_length, collate, shard
from regard.errors import RegardError
from regard.training.callbacks import Callback, StepResult
from regard.training.checkpoint import Checkpoints
from regard.training.distributed import Distributed
from regard.training.objective import Objective
from regard.training.optim import learning_rate
from regard.training.state import TrainState
from regard.training.validation import ValidationResult

REPLAN_EVERY_STEPS = 10  # how often a time limit revises the number of steps


class Update(NamedTuple):
    """Batches of one optimizer step (gradient accumulation)."""

    batches: list[Indices]
    is_end_of_epoch: bool


class TrainingLoop:
    """Optimization loop. It receives everything it uses and builds nothing.

    Args:
        objective: the model with its loss, in training mode.
        optimizer: of the model's parameters.
        pairs: the training pairs.
        config: settings of the optimization.
        state: counters to continue from; updated in place.
        group: the processes that share every batch.
        validate: measures the model.
        checkpoints: where to write checkpoints; None writes none.
        callbacks: called in order at every event.
        should_stop: polled after every step; when any process's returns True, all write a
            checkpoint and stop.
    """

    def __init__(
        self,
        objective: Objective,
        optimizer: torch.optim.Optimizer,
        pairs: EncodedPairs,
        config: TrainConfig,
        state: TrainState,
        group: Distributed,
        *,
        validate: Callable[[], ValidationResult],
        checkpoints: Checkpoints | None = None,
        callbacks: Sequence[Callback] = (),
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.objective, self.optimizer = objective, optimizer
        self.pairs, self.config, self.state, self.group = pairs, config, state, group
        self.validate, self.checkpoints = validate, checkpoints
        self.callbacks, self.should_stop = callbacks, should_stop
        self._module = group.wrap(objective)
        self._clock = self._last_checkpoint = time.monotonic()

    def run(self) -> TrainState:
        """Train until the last step, the time limit, early stopping or an interruption."""
        self._clock = self._last_checkpoint = time.monotonic()
        for callback in self.callbacks:
            callback.on_start(self.state)
        for update in self._updates():
            is_interrupted = self.step(update)
            if is_interrupted or self.state.stop_reason:
                break
        for callback in self.callbacks:
            callback.on_end(self.state)
        return self.state

    def step(self, update: Update) -> bool:
        """Take one optimizer step, then log, validate and checkpoint where due.

        Returns:
            Whether `should_stop` asked for an interruption.
        """
        config, state, group = self.config, self.state, self.group

        # Every step is seeded from its number, so that a resumed run draws the same dropout masks.
        step = state.step + 1
        torch.manual_seed(_step_seed(config.seed, step, group.rank))
        rate = learning_rate(step, config, state.max_steps)
        for parameter_group in self.optimizer.param_groups:
            parameter_group["lr"] = rate

        # Forward and backward, with gradient accumulation over the batches of the update.
        tokens = sum(self.pairs.target_tokens(rows) + len(rows) for rows in update.batches)
        loss_sum = 0.0
        for index, rows in enumerate(update.batches):
            batch, weight = self._local_batch(rows)
            is_last = index == len(update.batches) - 1
            with self._gradient_sync(is_last), self._autocast():
                losses = self._module(batch)
                # DistributedDataParallel averages gradients; the factor turns it into their sum
                (losses.loss * (weight * group.world_size / tokens)).backward()
            loss_sum += float(losses.nll.detach()) * weight

        # Gradient clipping.
        norm = clip_grad_norm_(self.objective.parameters(), config.max_grad_norm or inf)
        if isnan(loss_sum) or not norm.isfinite():
            raise _divergence(f"the loss of step {step}")

        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

        # Counters; every process learns the total loss and whether one of them was interrupted.
        loss_sum, interruptions = group.all_reduce(loss_sum, float(self.should_stop()))
        state.step, state.batch_index = step, state.batch_index + len(update.batches)
        state.tokens_since_validation += tokens
        state.loss_sum += loss_sum
        self._count_seconds()
        if config.minutes is not None and state.step % REPLAN_EVERY_STEPS == 0:
            (state.seconds,) = group.broadcast(state.seconds)
            state.replan(config.minutes)

        # Log.
        result = StepResult(loss_sum / tokens, tokens, rate)
        for callback in self.callbacks:
            callback.on_step(state, result)

        # Validate, with early stopping.
        every = config.validate_every
        is_validation_due = state.step % every == 0 if every else update.is_end_of_epoch
        is_validation_due |= state.step >= state.max_steps
        if is_validation_due:
            self._validate()
        if state.step >= state.max_steps and not state.stop_reason:
            state.stop_reason = "the last step was reached"

        # Checkpoint.
        is_overdue = time.monotonic() - self._last_checkpoint > 60 * config.save_every
        if is_validation_due or interruptions or is_overdue:
            self._save_checkpoint()
        return interruptions > 0

    def _updates(self) -> Iterator[Update]:
        """Yield the batches of each optimizer step, from where the state stands, for ever."""
        config, state = self.config, self.state
        while True:
            batches = batch_by_length(self.pairs, config.batch_tokens, config.seed, state.epoch)
            while state.batch_index < len(batches):
                end = state.batch_index + config.accumulation_steps
                yield Update(batches[state.batch_index : end], end >= len(batches))
            state.epoch, state.batch_index = state.epoch + 1, 0

    def _local_batch(self, rows: Indices) -> tuple[Batch, float]:
        """Return this process's shard of a batch; if it is empty, a pair of weight 0."""
        own = shard(rows, self.group.rank, self.group.world_size)
        weight = 1.0 if len(own) else 0.0
        with_links = self.objective.alignment_weight > 0
        batch = collate(self.pairs, own if len(own) else rows[:1], with_links)
        return batch.to(self.group.device), weight

    def _gradient_sync(self, is_last: bool) -> AbstractContextManager[None]:
        """Synchronize gradients over the processes only in the last batch of an update."""
        if is_last or not isinstance(self._module, DistributedDataParallel):
            return nullcontext()
        return self._module.no_sync()

    def _autocast(self) -> torch.autocast:
        kind = self.group.device.type
        is_bfloat16 = self.config.precision == "bfloat16" and kind == "cuda"
        return torch.autocast(kind, torch.bfloat16, enabled=is_bfloat16)

    def _count_seconds(self) -> None:
        now = time.monotonic()
        self.state.seconds += now - self._clock
        self._clock = now

    def _validate(self) -> None:
        """Measure the model, and record the result in the state."""
        state = self.state
        train_loss = state.loss_sum / max(state.tokens_since_validation, 1)
        result = self.validate()._replace(train_loss=train_loss)
        if not isfinite(result.loss):
            raise _divergence(f"the validation loss of step {state.step}")
        state.record_validation(result.metric, self.config.patience)
        for callback in self.callbacks:
            callback.on_validation(state, result)
        self._count_seconds()
        (state.seconds,) = self.group.broadcast(state.seconds)
        state.replan(self.config.minutes)

    def _save_checkpoint(self) -> None:
        state, model = self.state, self.objective.model
        if not all(parameter.isfinite().all() for parameter in model.parameters()):
            raise _divergence(f"a parameter after step {state.step}")
        if self.checkpoints is not None and self.group.is_main:
            self.checkpoints.save(model, self.optimizer, state)
            self.checkpoints.keep_parameters({*state.averaged_steps(self.config), state.best_step})
        for callback in self.callbacks:
            callback.on_checkpoint(state)
        self._last_checkpoint = time.monotonic()


def _divergence(what: str) -> RegardError:
    """Return the error for a run that diverged; nothing of it is saved."""
    return RegardError(
        f"{what} is not finite; the last checkpoint is kept. "
        "Try a lower train.learning_rate or a longer train.warmup"
    )


def _step_seed(seed: int, step: int, rank: int) -> int:
    return ((seed * 1_000_003 + step) * 4099 + rank) % MAX_SEED
