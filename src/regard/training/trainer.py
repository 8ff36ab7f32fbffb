"""Training from texts to a run folder; the same call again goes on where it stopped."""

import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard._support.files import lock_folder
from regard._support.progress import format_duration
from regard.data import Corpus
from regard.models import Embedding, build
from regard.runs import RunFolder, parameters
from regard.training import optim, setup
from regard.training.checkpoint import Checkpoints
from regard.training.distributed import Distributed, gathered
from regard.training.estimate import seconds_per_step
from regard.training.logging import Bar, Log
from regard.training.loop import Hooks, Training, diverged, validation_loss
from regard.training.objective import Objective
from regard.training.selection import finish, validation_bleu
from regard.training.setup import Prepared, Updates
from regard.training.signals import Interrupted, stop_requested
from regard.training.state import Progress
from regard.training.threads import threads

FIRST_SNAPSHOT = 25  # steps; the others come at twice the step of the one before
LOGGED = 20  # steps between two lines of the log that tell the loss

Echo = Callable[[str], None]


def train(
    corpus: Corpus,
    out: Path,
    *,
    valid: Corpus | None = None,
    updates: Updates = (),
    echo: Echo | None = None,
) -> Progress:
    """Train a translator on a corpus, in a run folder."""
    folder = RunFolder(Path(out))
    with gathered() as crew:
        speak = (echo or _to_stderr) if crew.leads else _silent
        settings, count = setup.settle(corpus, updates, valid)
        origin = {
            "texts": [*corpus.names, *(valid.names if valid else ())],
            "fingerprints": [part.fingerprint for part in (corpus, valid) if part],
            "pairs": count,
            "dataset": dict(corpus.dataset) if corpus.dataset else None,
        }
        with lock_folder(folder.path) if crew.leads else nullcontext():
            if crew.leads:
                known = setup.claim(folder, settings, origin)
                folder.remove_temps()
                speak(f"{'going on with' if known else 'making'} {folder.path}: {count:,} pairs")
                setup.prepare(folder, settings, corpus, valid, count)
            crew.wait(long=True)
            with threads(settings):
                return _Session(folder, setup.opened(folder, settings), crew, speak).run()


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _silent(line: str) -> None:
    pass


@dataclass
class _Session:
    """One start of a training, new or resumed."""

    folder: RunFolder
    prepared: Prepared
    crew: Distributed
    echo: Echo

    def run(self) -> Progress:
        """Train, and leave the best weights in the folder."""
        settings = self.prepared.settings
        torch.manual_seed(settings.train.seed)
        self.model = build(settings.model, self.prepared.tokenizers.vocab_sizes).to(
            self.crew.device
        )
        self.objective = self._objective().train()
        self.optimizer = optim.build(self.model, settings.train, self.crew)
        self.checkpoints = Checkpoints(self.folder.checkpoints)
        progress = self.checkpoints.resume(self.model, self.optimizer, self.echo)
        if progress is None and self.folder.model_card.exists():
            self.echo(f"{self.folder.path} is done already, and its checkpoints are gone")
            return Progress(finished="its checkpoints are gone")
        if progress is None:
            progress = Progress(planned=settings.train.steps)
            self._announce(progress)
        elif not progress.finished:
            self.echo(f"going on from step {progress.step}")
        if settings.train.compile:
            _compile(self.model)
        if not progress.finished:
            self._train(progress)
        if self.crew.leads:
            finish(self.folder, self.prepared, self.objective, progress, self.echo)
        self.crew.wait()
        return progress

    def _objective(self) -> Objective:
        settings = self.prepared.settings.train
        return Objective(
            self.model,
            settings.label_smoothing,
            settings.alignment_loss_weight,
            settings.alignment_layer,
        )

    def _announce(self, progress: Progress) -> None:
        """Echo what will be done and how long it may take; plan for the time box, if any."""
        settings, prepared = self.prepared.settings.train, self.prepared
        seconds = seconds_per_step(self.objective, prepared, self.crew)
        (seconds,) = self.crew.tell([seconds])
        if settings.minutes is not None:
            progress.planned = max(round(settings.minutes * 60 / seconds), 1)
        dropped = {**prepared.train.dropped}
        left_out = "".join(f"; {count:,} left out ({why})" for why, count in dropped.items())
        weights = sum(weight.numel() for weight in self.model.parameters())
        tokens = " and ".join(f"{size:,}" for size in sorted(set(prepared.tokenizers.vocab_sizes)))
        what = "cuts of pairs" if prepared.settings.data.bpe_dropout_samples else "pairs"
        learned, validated = len(prepared.train), len(prepared.valid)
        self.echo(f"{learned:,} {what} to learn, {validated:,} to validate{left_out}")
        self.echo(
            f"{prepared.settings.model.kind}, {weights:,} weights, {tokens} tokens to choose from"
        )
        self.echo(
            f"{progress.planned:,} steps at most: "
            f"about {format_duration(progress.planned * seconds)}"
        )

    def _train(self, progress: Progress) -> None:
        log = Log(self.folder.log, progress.step) if self.crew.leads else None
        with Bar(progress.step, progress.planned, None if self.crew.leads else _silent) as bar:
            self.bar, self.log, self.losses = bar, log, list[float]()
            self.tokens, self.since = 0, progress.seconds  # learned, and from when on
            if progress.step == 0:
                self._keep(0)
            with stop_requested() as stopped:
                hooks = Hooks(
                    report=partial(self._told, progress),
                    validate=self._validate,
                    save=self._save,
                    stopped=stopped,
                )
                Training(
                    self.objective,
                    self.optimizer,
                    self.prepared.train,
                    self.prepared.settings.train,
                    progress,
                    self.crew,
                    hooks,
                ).run()
        if not progress.finished:
            raise Interrupted(f"stopped at step {progress.step}; the same command goes on")

    def _told(self, progress: Progress, entry: dict[str, Any]) -> None:
        self.bar.step(entry["step"], progress.planned, entry["loss"], entry["tokens"])
        self.losses.append(entry["loss"])
        self.tokens += entry["tokens"]
        if entry["step"] % LOGGED == 0:
            if self.log is not None:
                self._log(progress, entry)
            self.losses.clear()
            self.tokens, self.since = 0, progress.seconds
        self._keep(entry["step"])

    def _log(self, progress: Progress, entry: dict[str, Any]) -> None:
        """Write how the steps since the last line went, or since this start."""
        assert self.log is not None
        self.log.add(
            step=entry["step"],
            seconds=round(progress.seconds, 3),
            loss=sum(self.losses) / len(self.losses),
            learning_rate=entry["learning_rate"],
            tokens_per_second=round(self.tokens / max(progress.seconds - self.since, 1e-9), 1),
        )

    def _keep(self, step: int) -> None:
        """Keep the weights of a few steps, for those who want to see how they came about."""
        doublings, rest = divmod(step, FIRST_SNAPSHOT)
        wanted = self.prepared.settings.train.snapshots and self.crew.leads
        if wanted and rest == 0 and doublings & (doublings - 1) == 0:  # 0, 1, 2, 4, 8 …
            parameters.save(
                self.folder.snapshot(step), parameters.state_of(self.model), {"step": step}
            )

    def _validate(self, progress: Progress) -> float:
        settings = self.prepared.settings.train
        loss = validation_loss(
            self.objective, self.prepared.valid, settings.batch_tokens, self.crew
        )
        if not isfinite(loss):
            raise diverged(f"the validation loss of step {progress.step}")
        entry = {
            "step": progress.step,
            "epoch": progress.epoch,
            "seconds": round(progress.seconds, 3),
            "train_loss": progress.lost / max(progress.told, 1),
            "valid_loss": loss,
        }
        figure = loss
        if settings.validation_metric == "bleu":
            leads = self.crew.leads
            entry["bleu"] = validation_bleu(self.model, self.prepared) if leads else 0.0
            (entry["bleu"],) = self.crew.tell([entry["bleu"]])
            figure = -entry["bleu"]
        if self.log is not None:
            self.log.add(**entry)
            if progress.best is None or figure < progress.best:
                parameters.save(
                    self.folder.model, parameters.state_of(self.model), {"step": progress.step}
                )
        self.bar.note(_sentence(entry))
        return figure

    def _save(self, progress: Progress) -> None:
        if self.crew.leads:
            self.checkpoints.save(self.model, self.optimizer, progress)
            averaged = progress.averaged(self.prepared.settings.train)
            self.checkpoints.keep_parameters({*averaged, progress.best_step})


def _sentence(entry: dict[str, Any]) -> str:
    bleu = f", BLEU {entry['bleu']:.2f}" if "bleu" in entry else ""
    return (
        f"step {entry['step']}, epoch {entry['epoch'] + 1}, {format_duration(entry['seconds'])}: "
        f"training loss {entry['train_loss']:.3f}, validation loss {entry['valid_loss']:.3f}{bleu}"
    )


def _compile(model: nn.Module) -> None:
    """Compile what computes on many rows; a lookup gains nothing, and is asked for each place."""
    for part in model.children():
        if not isinstance(part, Embedding):
            part.compile(dynamic=True)
