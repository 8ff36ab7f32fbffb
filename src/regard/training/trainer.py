"""Training from a corpus to a run folder; the same call resumes an interrupted run."""

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard import presets
from regard._support import files
from regard._support.progress import echo_to_stderr, format_duration
from regard.data import Corpus
from regard.errors import RegardError
from regard.models import Embedding, build
from regard.runs import Run, RunFolder, load, parameters
from regard.training.callbacks import BestParameters, Callback, Snapshots
from regard.training.checkpoint import Checkpoints
from regard.training.distributed import Distributed, init_distributed
from regard.training.logging import Echo, JsonlLog, ProgressBar
from regard.training.loop import TrainingLoop
from regard.training.model_card import model_card
from regard.training.objective import Objective
from regard.training.optim import build_optimizer
from regard.training.selection import select_parameters
from regard.training.setup import (
    CorpusSummary,
    TrainingData,
    claim_folder,
    open_data,
    prepare_data,
    resolve_config,
    scan_corpus,
)
from regard.training.signals import Interrupted, stop_requested
from regard.training.state import TrainState
from regard.training.timing import limit_threads, seconds_per_step
from regard.training.validation import translate_validation, validate

ALIGNMENT_LOSS_WEIGHT = 0.05  # of guided alignment, when a file of alignments is given

FilePath = str | os.PathLike[str]
CorpusLike = Corpus | FilePath | Sequence[FilePath]


def train(
    corpus: CorpusLike,
    out: FilePath,
    *,
    valid: CorpusLike | None = None,
    alignments: FilePath | None = None,
    preset: str | None = None,
    minutes: float | None = None,
    updates: Mapping[str, Any] | Sequence[Mapping[str, Any]] = (),
    callbacks: Sequence[Callback] = (),
    echo: Echo | None = None,
) -> Run:
    """Train a translation model on sentence pairs, or resume an interrupted run.

    Started by torchrun, the processes share every batch; all of them return.

    Args:
        corpus: a TSV file (source, tab, target), two parallel files, or a `Corpus`.
        out: the run folder. An existing run with the same settings and corpus is resumed; a
            finished one is returned as it is.
        valid: validation pairs; by default some of the corpus are held out.
        alignments: file of word alignments (`0-0 1-2`) of the corpus, for guided alignment.
        preset: name of a preset to start from; see `regard.presets`.
        minutes: time limit; the learning rate schedule is planned for it.
        updates: settings that override all others: `{"model": {"layers": 6}}`, or several of them.
        callbacks: observers of the training loop, called in the main process.
        echo: receives each status line. By default they go to stderr, with a live progress bar if
            it is a terminal.

    Returns:
        The trained run.

    Raises:
        RegardError: a file, setting or folder does not fit, or training diverged.
        Interrupted: SIGINT or SIGTERM arrived; the same call resumes.

    Example:
        ```python
        run = regard.train("pairs.tsv", "run", minutes=10, updates={"model": {"layers": 2}})
        ```
    """
    settings = [updates] if isinstance(updates, Mapping) else list(updates)
    if minutes is not None:
        settings.insert(0, {"train": {"minutes": minutes}})
    if preset is not None:
        settings.insert(0, presets.read(preset))
    if alignments is not None:
        settings.insert(0, {"train": {"alignment_loss_weight": ALIGNMENT_LOSS_WEIGHT}})
    corpus = _to_corpus(corpus, alignments)
    valid = None if valid is None else _to_corpus(valid)
    folder = RunFolder(Path(out))
    with init_distributed() as group, ExitStack() as stack:
        summary = scan_corpus(corpus)
        valid_summary = None if valid is None else scan_corpus(valid)
        config = resolve_config(summary, settings)
        if group.is_main:
            stack.enter_context(files.lock_folder(folder.path))
            origin = _origin(corpus, summary, valid, valid_summary)
            is_resumed = claim_folder(folder, config, origin)
            folder.remove_temps()
            verb = "resuming" if is_resumed else "creating"
            (echo or echo_to_stderr)(f"{verb} {folder.path}: {summary.pairs:,} pairs")
            prepare_data(folder, config, corpus, valid, summary.pairs)
        group.barrier(slow=True)
        with limit_threads(config):
            Trainer(folder, open_data(folder, config), group, echo, callbacks).run()
    return load(folder.path)


def _to_corpus(corpus: CorpusLike, alignments: FilePath | None = None) -> Corpus:
    if isinstance(corpus, Corpus):
        if alignments is not None:
            raise RegardError("alignments= needs files; pass them to Corpus.from_files instead")
        return corpus
    paths = [corpus] if isinstance(corpus, str | os.PathLike) else corpus
    links = None if alignments is None else Path(alignments)
    return Corpus.from_files([Path(path) for path in paths], links)


def _origin(
    corpus: Corpus,
    summary: CorpusSummary,
    valid: Corpus | None,
    valid_summary: CorpusSummary | None,
) -> dict[str, Any]:
    """Return what settings.json records of the data."""
    summaries = [summary] if valid_summary is None else [summary, valid_summary]
    return {
        "texts": [*corpus.names, *(valid.names if valid else ())],
        "fingerprints": [one.fingerprint for one in summaries],
        "pairs": summary.pairs,
        "dataset": dict(corpus.dataset) if corpus.dataset else None,
    }


def _discard(line: str) -> None:
    """Ignore a status line: only the main process prints."""


class Trainer:
    """One start of a run, new or resumed: builds what the loop needs, and finishes the run.

    Args:
        folder: the run folder, claimed and locked by the main process.
        data: settings, tokenizers and encoded pairs.
        group: the processes of the run.
        echo: receives status lines; None prints them to stderr, with a progress bar.
        callbacks: further callbacks, for the main process.
    """

    def __init__(
        self,
        folder: RunFolder,
        data: TrainingData,
        group: Distributed,
        echo: Echo | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.folder, self.data, self.group = folder, data, group
        self.config = data.config.train
        torch.manual_seed(self.config.seed)
        model = build(data.config.model, data.tokenizers.vocab_sizes)
        self.model = model.to(group.device)
        self.objective = Objective(
            self.model,
            self.config.label_smoothing,
            self.config.alignment_loss_weight,
            self.config.alignment_layer,
        ).train()
        self.optimizer = build_optimizer(self.model, self.config, group)
        self.checkpoints = Checkpoints(folder.checkpoints)
        self.callbacks = callbacks
        self.bar_echo = echo
        self.echo = (echo or echo_to_stderr) if group.is_main else _discard

    def run(self) -> TrainState:
        """Train to the end, and write the selected parameters and the model card."""
        state = self.checkpoints.resume(self.model, self.optimizer, self.echo)
        if state is None and self.folder.model_card.exists():
            self.echo(f"{self.folder.path} is already finished, and its checkpoints were deleted")
            return TrainState(stop_reason="the checkpoints were deleted")
        if state is None:
            state = TrainState(max_steps=self.config.steps)
            self._announce(state)
        elif not state.stop_reason:
            self.echo(f"resuming from step {state.step}")
        if self.config.compile:
            _compile(self.model)
        if not state.stop_reason:
            self._train(state)
        if self.group.is_main:
            self._finish(state)
        self.group.barrier()
        return state

    def _announce(self, state: TrainState) -> None:
        """Print sizes and the estimated time; set the number of steps for a time limit."""
        data, minutes = self.data, self.config.minutes
        (seconds,) = self.group.broadcast(seconds_per_step(self.objective, data, self.group))
        if minutes is not None:
            state.max_steps = max(round(minutes * 60 / seconds), 1)
        samples = data.config.data.bpe_dropout_samples
        segmentations = f" ({samples} BPE-dropout segmentations of each)" if samples else ""
        num_train = len(data.train) // max(samples, 1)
        dropped = "".join(
            f"; dropped {count:,} ({reason})" for reason, count in data.train.dropped.items()
        )
        self.echo(
            f"{num_train:,} training pairs{segmentations}, "
            f"{len(data.valid):,} validation pairs{dropped}"
        )
        num_parameters = sum(parameter.numel() for parameter in self.model.parameters())
        sizes = sorted(set(data.tokenizers.vocab_sizes))
        vocabulary = "vocabulary of" if len(sizes) == 1 else "vocabularies of"
        self.echo(
            f"{data.config.model.kind}, {num_parameters:,} parameters, "
            f"{vocabulary} {' and '.join(f'{size:,}' for size in sizes)}"
        )
        duration = format_duration(state.max_steps * seconds)
        self.echo(f"at most {state.max_steps:,} steps, about {duration}")

    def _train(self, state: TrainState) -> None:
        """Run the loop with the callbacks of the main process."""
        bar = ProgressBar(state, self.bar_echo) if self.group.is_main else None
        with bar or nullcontext(), stop_requested() as should_stop:
            TrainingLoop(
                self.objective,
                self.optimizer,
                self.data.train,
                self.config,
                state,
                self.group,
                validate=partial(validate, self.objective, self.data, self.group),
                checkpoints=self.checkpoints,
                callbacks=[] if bar is None else self._main_callbacks(bar),
                should_stop=should_stop,
            ).run()
        if not state.stop_reason:
            raise Interrupted(f"interrupted at step {state.step}; run the same command to resume")

    def _main_callbacks(self, bar: ProgressBar) -> list[Callback]:
        callbacks = [
            bar,
            JsonlLog(self.folder.log),
            BestParameters(self.folder.model, self.model),
            *self.callbacks,
        ]
        if self.config.snapshots:
            callbacks.append(Snapshots(self.folder.snapshot, self.model))
        return callbacks

    def _finish(self, state: TrainState) -> None:
        """Select the final parameters; write them and the model card."""
        if self.folder.model_card.exists():
            self.echo(f"{self.folder.path} is already finished: {state.stop_reason}")
            return
        selection = select_parameters(self.folder, self.data, self.objective, state, self.echo)
        about = {"selection": selection.name}
        parameters.save(self.folder.model, parameters.state_of(self.model), about)
        translations, references = translate_validation(self.model, self.data)
        card = model_card(self.folder, state, selection, translations, references)
        files.write_file(self.folder.model_card, card)
        self.echo(
            f"finished: {state.stop_reason}; parameters: {selection.name}; "
            f"see {self.folder.model_card}"
        )


def _compile(model: nn.Module) -> None:
    """Compile the model's parts, except embeddings: a lookup gains nothing from it."""
    for part in model.children():
        if not isinstance(part, Embedding):
            part.compile(dynamic=True)
