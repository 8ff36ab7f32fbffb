"""The loop: next batch, loss, backward, clip, step, log; now and then validate and save."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad_norm_

from regard.config import MAX_SEED, TrainConfig
from regard.data import Batch, EncodedPairs, Indices, batch_by_length, collate, shard
from regard.errors import RegardError
from regard.training.distributed import Distributed
from regard.training.objective import Objective
from regard.training.schedule import rate
from regard.training.state import Progress

REPLAN = 10  # steps between looks at the clock of a time box

Report = Callable[[dict[str, Any]], None]


class Hooks(NamedTuple):
    """What the loop calls: to tell of a step, to validate, to save, to ask if it shall stop."""

    report: Report
    validate: Callable[[Progress], float]  # the figure to be made smaller
    save: Callable[[Progress], None]
    stopped: Callable[[], bool] = lambda: False


@dataclass
class Training:
    """A training under way; it is handed everything and builds nothing."""

    objective: Objective
    optimizer: torch.optim.Optimizer
    pairs: EncodedPairs
    settings: TrainConfig
    progress: Progress
    crew: Distributed
    hooks: Hooks

    def run(self) -> Progress:
        """Train until the plan is done, the time is up or there is no more progress."""
        wrapped, progress = self.crew.wrap(self.objective), self.progress
        self.clock = self.saved = time.monotonic()
        self.stopping = False
        for update in self._updates():
            if progress.finished:
                break
            lost, told = self._step(wrapped, update)
            self._advance(lost, told, len(update))
            if self._due():
                self._validate()
            elif time.monotonic() - self.saved > 60 * self.settings.save_every:
                self._save()
            self._end_if_done()
            if self.stopping:
                self._save()
                break
        return progress

    def _updates(self) -> Iterator[list[Indices]]:
        """Give the batches of each update, from where the training stands, epoch after epoch."""
        settings, progress = self.settings, self.progress
        while True:
            order = batch_by_length(
                self.pairs, settings.batch_tokens, settings.seed, progress.epoch
            )
            self.batches = len(order)  # of this epoch
            while progress.place < len(order):
                yield order[progress.place : progress.place + settings.accumulation_steps]
            progress.epoch, progress.place = progress.epoch + 1, 0

    def _step(self, wrapped: nn.Module, update: list[Indices]) -> tuple[float, int]:
        """Change the weights once; give the plain loss and how many tokens it is of."""
        step, crew = self.progress.step + 1, self.crew
        for group in self.optimizer.param_groups:
            group["lr"] = rate(step, self.settings, self.progress.planned)
        # seeded by its number, a step draws the same chances whenever it is taken
        torch.manual_seed(_seed(self.settings.seed, step, crew.rank))
        told = sum(self.pairs.target_tokens(rows) + len(rows) for rows in update)
        lost = 0.0
        for number, rows in enumerate(update):
            part, weight = self._part(rows)
            with _unsynced(wrapped, number < len(update) - 1), self._precision():
                losses = wrapped(part)
                # processes average their gradients, and the sum is wanted
                (losses.learned * (weight * crew.world / told)).backward()
            lost += float(losses.plain.detach()) * weight
        self._check(lost, step)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        lost, stops = crew.sum(lost, float(self.hooks.stopped()))
        self.stopping = stops > 0
        return lost, told

    def _part(self, rows: Indices) -> tuple[Batch, float]:
        """Give this process's part of a batch; if there is none, a pair that counts nothing."""
        mine = shard(rows, self.crew.rank, self.crew.world)
        weight = 1.0 if len(mine) else 0.0
        guided = self.objective.guide > 0
        part = collate(self.pairs, mine if len(mine) else rows[:1], guided)
        return part.to(self.crew.device), weight

    def _precision(self) -> torch.autocast:
        half = self.settings.precision == "bfloat16" and self.crew.device.type == "cuda"
        return torch.autocast(self.crew.device.type, torch.bfloat16, enabled=half)

    def _check(self, lost: float, step: int) -> None:
        clip = self.settings.max_grad_norm or float("inf")
        norm = clip_grad_norm_(self.objective.parameters(), clip)
        if not (norm.isfinite() and lost == lost):
            raise diverged(f"the loss of step {step}")

    def _advance(self, lost: float, told: int, taken: int) -> None:
        progress, now = self.progress, time.monotonic()
        progress.seconds += now - self.clock
        self.clock = now
        progress.step, progress.place = progress.step + 1, progress.place + taken
        progress.told, progress.lost = progress.told + told, progress.lost + lost
        if self.settings.minutes is not None and progress.step % REPLAN == 0:
            (progress.seconds,) = self.crew.tell([progress.seconds])
            progress.replan(self.settings)
        pace = self.optimizer.param_groups[0]["lr"]
        entry = {"step": progress.step, "loss": lost / told, "tokens": told, "learning_rate": pace}
        self.hooks.report(entry)

    def _due(self) -> bool:
        every, progress = self.settings.validate_every, self.progress
        due = progress.step % every == 0 if every else progress.place >= self.batches
        return due or progress.step >= progress.planned

    def _validate(self) -> None:
        progress = self.progress
        progress.judge(self.hooks.validate(progress), self.settings)
        progress.told, progress.lost = 0, 0.0
        (progress.seconds,) = self.crew.tell([progress.seconds + time.monotonic() - self.clock])
        self.clock = time.monotonic()
        progress.replan(self.settings)
        self._save()

    def _save(self) -> None:
        if not all(weight.isfinite().all() for weight in self.objective.parameters()):
            raise diverged(f"a weight after step {self.progress.step}")
        self._end_if_done()
        self.hooks.save(self.progress)
        self.saved = time.monotonic()

    def _end_if_done(self) -> None:
        progress = self.progress
        if progress.step >= progress.planned and not progress.finished:
            progress.finished = "all planned steps are done"


def diverged(what: str) -> RegardError:
    """Say that a training went astray, before anything of it is saved."""
    return RegardError(
        f"{what} is not a number, or not finite; the last good state is kept. "
        "A lower train.rate or a longer train.warmup would help"
    )


def _unsynced(wrapped: nn.Module, wanted: bool) -> AbstractContextManager[None]:
    """Keep gradients to this process until the last batch of an update."""
    if wanted and isinstance(wrapped, DistributedDataParallel):
        return wrapped.no_sync()
    return nullcontext()


def _seed(seed: int, step: int, rank: int) -> int:
    return ((seed * 1_000_003 + step) * 4099 + rank) % MAX_SEED


@torch.no_grad()
def validation_loss(
    objective: Objective, pairs: EncodedPairs, tokens: int, crew: Distributed
) -> float:
    """Give the plain loss per token over all pairs, shared out among the processes."""
    was_training = objective.training
    objective.eval()
    lost = told = 0.0
    for rows in batch_by_length(pairs, tokens, seed=0, epoch=0)[crew.rank :: crew.world]:
        part = collate(pairs, rows).to(crew.device)
        lost += float(objective(part).plain)
        told += part.target_tokens
    objective.train(was_training)
    lost, told = crew.sum(lost, told)
    return lost / told
