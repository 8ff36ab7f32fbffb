"""The training loop: batch, loss, backward, clip, optimizer step, log, validate, checkpoint."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import inf, isfinite, isnan
from typing import NamedTuple

import torch
from torch.distributed.fsdp import FSDPModule
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad_norm_

from regard._support.text import count
from regard.config import MAX_SEED, TrainConfig
from regard.data import Batch, EncodedPairs, Indices, batch_by_length, collate, shard
from regard.errors import RegardError
from regard.training.callbacks import Callback, StepResult
from regard.training.checkpoint import Checkpoints
from regard.training.distributed import Distributed
from regard.training.objective import Objective
from regard.training.optim import learning_rate
from regard.training.sharding import Sharding, full_tensor, local_tensor
from regard.training.train_state import TrainState
from regard.training.validation import ValidationResult

REPLAN_EVERY_STEPS = 10  # how often a time limit revises its plan
FIRST_STEPS = 10  # up to which it does so at every step


class Update(NamedTuple):
    """Batches of one optimizer step (gradient accumulation)."""

    batches: list[Indices]
    is_end_of_epoch: bool


class TrainingLoop:
    """Optimization loop. It receives everything it uses and builds nothing.

    Args:
        objective: the model with its loss, in training mode; that of `sharding`, if there is one.
        optimizer: of the model's parameters.
        pairs: the training pairs.
        config: settings of the optimization.
        state: counters to continue from; updated in place.
        group: the processes that share every batch.
        validate: measures the model.
        checkpoints: where to write checkpoints; None writes none.
        sharding: the sharded objective and optimizer, if they are sharded.
        callbacks: called in order at every event.
        should_stop: polled after every step; when any process's returns True, all write a
            checkpoint and stop.
        clock: returns seconds; `time.monotonic` by default.
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
        sharding: Sharding | None = None,
        callbacks: Sequence[Callback] = (),
        should_stop: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.objective, self.optimizer = objective, optimizer
        self.pairs, self.config, self.state, self.group = pairs, config, state, group
        self.validate, self.checkpoints, self.sharding = validate, checkpoints, sharding
        self.callbacks, self.should_stop = callbacks, should_stop
        self._module = group.wrap(objective) if sharding is None else objective
        self._clock = clock or time.monotonic
        self._counted = self._last_checkpoint = self._clock()  # when seconds were last counted
        self._pause_seconds = 0.0  # from the last step or validation to the next step

    def run(self) -> TrainState:
        """Train until the last step, the time limit, early stopping or an interruption."""
        self._counted = self._last_checkpoint = self._clock()
        for callback in self.callbacks:
            callback.on_start(self.state)
        try:
            for update in self._updates():
                if self.step(update):
                    break
        finally:
            for callback in self.callbacks:
                callback.on_end(self.state)
        return self.state

    def step(self, update: Update) -> bool:
        """Take one optimizer step, then log, validate and checkpoint where due.

        Returns:
            Whether training ends here: `state.stop_reason` says why, or `should_stop` asked for an
            interruption.
        """
        config, state, group = self.config, self.state, self.group

        # Every step is seeded from its number, so that a resumed run draws the same dropout masks.
        step = state.step + 1
        torch.manual_seed(_step_seed(config.seed, step, group.rank))
        rate = learning_rate(step, config, state.max_steps, state.plan)
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
                # gradients are averaged over the processes; the factor turns it into their sum
                (losses.loss * (weight * group.world_size / tokens)).backward()
            loss_sum += float(losses.nll.detach()) * weight

        # Gradient clipping.
        norm = clip_grad_norm_(self.objective.parameters(), config.max_grad_norm or inf)
        if isnan(loss_sum) or not full_tensor(norm).isfinite():
            raise _divergence(f"the loss of step {step}")

        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

        # Counters; every process learns the total loss, whether one of them was interrupted, and
        # the main process's time, by which all of them plan.
        durations = (self._elapsed(), self._pause_seconds) if group.is_main else (0.0, 0.0)
        loss_sum, interruptions, seconds, pause_seconds = group.all_reduce(
            loss_sum, float(self.should_stop()), *durations
        )
        state.step, state.batch_index = step, state.batch_index + len(update.batches)
        state.tokens_since_validation += tokens
        state.loss_sum += loss_sum
        state.seconds += pause_seconds + seconds
        if state.plan is not None:
            state.plan.record_step(step, seconds, pause_seconds)
            if step <= FIRST_STEPS or step % REPLAN_EVERY_STEPS == 0:
                state.replan(config)
            state.end_if_time_is_up(config)

        # Log.
        result = StepResult(loss_sum / tokens, tokens, rate)
        for callback in self.callbacks:
            callback.on_step(state, result)
        self._share_stop_request()

        # Validate, with early stopping.
        every = config.validate_every
        is_validation_due = state.step % every == 0 if every else update.is_end_of_epoch
        is_validation_due |= state.step >= state.max_steps or bool(state.stop_reason)
        if is_validation_due:
            self._validate()
        if state.step >= state.max_steps and not state.stop_reason:
            state.stop_reason = _end_reason(config)
        is_last = bool(state.stop_reason)  # a request of on_checkpoint ends the next step

        # Checkpoint.
        is_overdue = self._counted - self._last_checkpoint > 60 * config.save_every
        if is_validation_due or interruptions or is_overdue:
            self._save_checkpoint()
        self._pause_seconds = self._elapsed()
        return is_last or interruptions > 0

    def _updates(self) -> Iterator[Update]:
        """Yield the batches of each optimizer step, endlessly, starting at the current state."""
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
        if isinstance(self._module, FSDPModule):
            self._module.set_requires_gradient_sync(is_last)
        if is_last or not isinstance(self._module, DistributedDataParallel):
            return nullcontext()
        return self._module.no_sync()

    def _autocast(self) -> torch.autocast:
        kind = self.group.device.type
        is_bfloat16 = self.config.precision == "bfloat16" and kind == "cuda"
        return torch.autocast(kind, torch.bfloat16, enabled=is_bfloat16)

    def _elapsed(self) -> float:
        """Return the seconds since the last call."""
        now = self._clock()
        seconds, self._counted = now - self._counted, now
        return seconds

    def _validate(self) -> None:
        """Measure the model, and record the result in the state."""
        state = self.state
        train_loss = state.loss_sum / max(state.tokens_since_validation, 1)
        if self.sharding is not None:
            self.sharding.gather_parameters()  # for BLEU and callbacks
        result = self.validate()._replace(train_loss=train_loss)
        if not isfinite(result.loss):
            raise _divergence(f"the validation loss of step {state.step}")
        state.record_validation(result.metric, self.config.patience)
        for callback in self.callbacks:
            callback.on_validation(state, result)
        self._share_stop_request()
        (seconds,) = self.group.broadcast(self._elapsed())
        state.seconds += seconds
        if state.plan is not None and state.step < state.max_steps:
            state.plan.validation_seconds = seconds
            state.replan(self.config)

    def _share_stop_request(self) -> None:
        """End training in all processes if a callback, which the main one runs, asked for it."""
        (is_requested,) = self.group.broadcast(float(bool(self.state.stop_reason)))
        if is_requested and not self.state.stop_reason:
            self.state.stop_reason = "a callback of the main process ended training"

    def _save_checkpoint(self) -> None:
        state, model, optimizer = self.state, self.objective.model, self.optimizer
        shares = (local_tensor(parameter) for parameter in model.parameters())
        is_finite = all(share.isfinite().all() for share in shares)
        if self.sharding is not None:  # another process may have the share that is not finite
            (failures,) = self.group.all_reduce(float(not is_finite))
            is_finite = failures == 0
        if not is_finite:
            raise _divergence(f"a parameter after step {state.step}")
        if self.sharding is not None and self.checkpoints is not None:
            self.sharding.gather_parameters()
            self.sharding.gather_optimizer()
            model = (self.sharding.full_objective or self.objective).model
            optimizer = self.sharding.full_optimizer or self.optimizer
        if self.checkpoints is not None and self.group.is_main:
            self.checkpoints.save(model, optimizer, state)
            self.checkpoints.keep_parameters({*state.averaged_steps(self.config), state.best_step})
        if self.sharding is not None:
            self.sharding.release_optimizer()
        for callback in self.callbacks:
            callback.on_checkpoint(state)
        self._last_checkpoint = self._counted


def _end_reason(config: TrainConfig) -> str:
    if config.minutes is None:
        return "the last step was reached"
    return f"the time limit of {count(config.minutes, 'minute')} was reached"


def _divergence(what: str) -> RegardError:
    """Return the error for a run that diverged; nothing of it is saved."""
    return RegardError(
        f"{what} is not finite; the last checkpoint is kept. "
        "Try a lower train.learning_rate or a longer train.warmup"
    )


def _step_seed(seed: int, step: int, rank: int) -> int:
    return ((seed * 1_000_003 + step) * 4099 + rank) % MAX_SEED
