"""Training from a corpus to a run folder; the same call resumes an interrupted run."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from math import inf
from typing import Any

import torch
from torch import nn

from regard._support import files
from regard._support.progress import echo_to_stderr, format_duration
from regard._support.resources import keep_freed_memory
from regard._support.text import count
from regard.config import RunConfig
from regard.data import Corpus, FilePath
from regard.evaluation import bleu, is_chinese
from regard.models import Embedding, build
from regard.runs import Run, RunFolder, load, parameters
from regard.training.agreement import (
    check_same_command,
    check_same_state,
    check_shared_folder,
)
from regard.training.arguments import (
    CorpusLike,
    SettingsLike,
    check_callbacks,
    collect_settings,
    to_corpus,
    to_folder,
)
from regard.training.callbacks import BestParameters, Callback, Snapshots
from regard.training.checkpoint import Checkpoints
from regard.training.checkpoint_averaging import select_parameters
from regard.training.distributed import Distributed, init_distributed, launched_processes
from regard.training.launcher import start_workers
from regard.training.logging import Echo, JsonlLog, ProgressBar
from regard.training.loop import TrainingLoop
from regard.training.model_card import model_card
from regard.training.objective import Objective
from regard.training.optim import build_optimizer
from regard.training.plan import TimePlan
from regard.training.preparation import TrainingData, check_data, open_data, prepare_data
from regard.training.setup import (
    CorpusSummary,
    claim_folder,
    recorded_processes,
    resolve_config,
    resolve_processes,
    scan_corpus,
)
from regard.training.sharding import Sharding
from regard.training.signals import Interrupted, stop_requested
from regard.training.timing import limit_threads, seconds_per_step, validation_seconds
from regard.training.train_state import TrainState
from regard.training.validation import translate_validation, validate


def train(
    corpus: CorpusLike,
    out: FilePath,
    *,
    valid: CorpusLike | None = None,
    alignments: FilePath | None = None,
    preset: str | None = None,
    minutes: float | None = None,
    steps: int | None = None,
    processes: int | None = None,
    settings: SettingsLike = (),
    callbacks: Sequence[Callback] = (),
    echo: Echo | None = None,
) -> Run:
    """Train a translation model on sentence pairs, or resume an interrupted run.

    As many processes as pay on this host share every batch; this one is the main process. Started
    by torchrun, there are as many as it started, and all of them return.

    Args:
        corpus: a TSV file (source, tab, target), two parallel files, an iterable of pairs
            (source, target), or a `Corpus`. Pairs that can be read only once, such as those of a
            generator, are kept in a temporary file meanwhile.
        out: the run folder. An existing run with the same settings and corpus is resumed; a
            finished one is returned as it is.
        valid: validation pairs, in the same forms; by default some of the corpus are held out.
        alignments: file of word alignments (`0-0 1-2`) of the corpus, for guided alignment.
        preset: name of a preset to start from; see `regard.presets`.
        minutes: time limit; the learning rate schedule is planned for it.
        steps: number of optimizer steps, at most.
        processes: number of processes that share every batch. By default as many as the run had
            before or, for a new one, as pay on this host; see docs/scale.md.
        settings: settings that override the preset: `{"model": {"layers": 6}}`, several of them,
            or a whole `RunConfig`.
        callbacks: observers of the training loop, called in the main process; see `Callback`.
        echo: receives each status line. By default they go to stderr, with a live progress bar if
            it is a terminal.

    Returns:
        The trained run.

    Raises:
        RegardError: if a file, setting or folder does not fit, or training diverged.
        TypeError: if an argument has a wrong type, such as a corpus that is neither files nor
            pairs.
        Interrupted: if SIGINT (Ctrl-C, or the stop button of a notebook), SIGTERM or SIGHUP
            arrived; the same call resumes. It is a KeyboardInterrupt.

    Example:
        >>> import regard
        >>> pairs = [(f"number {n}", f"numéro {n}") for n in range(100)]
        >>> small = {"model": {"width": 16, "layers": 1, "heads": 2}, "data": {"vocab_size": 300}}
        >>> run = regard.train(pairs, "run", steps=3, settings=small, echo=lambda line: None)
        >>> run.settings.train.steps, run.translate("number 7").log_prob < 0
        (3, True)
    """
    updates = collect_settings(
        settings,
        preset=preset,
        minutes=minutes,
        steps=steps,
        processes=processes,
        has_alignments=alignments is not None,
    )
    check_callbacks(callbacks)
    folder = RunFolder(to_folder(out))
    with init_distributed() as group, ExitStack() as stack:
        with group.raise_together():
            corpus = to_corpus(corpus, stack, alignments)
            valid = None if valid is None else to_corpus(valid, stack)
            summary = scan_corpus(corpus)
            valid_summary = None if valid is None else scan_corpus(valid)
            config = resolve_config(summary, updates)
        summaries = [summary] if valid_summary is None else [summary, valid_summary]
        check_same_command(group, config, summaries)
        launched = launched_processes()
        with group.raise_together():
            if group.is_main:
                stack.enter_context(files.lock_folder(folder.path, folder.settings.name))
                recorded = recorded_processes(folder)
                config = resolve_processes(config, launched, recorded)
                is_resumed = claim_folder(folder, config, _origin(corpus, valid, summaries))
                folder.remove_temps()
        check_shared_folder(group, folder.path)
        with group.raise_together():
            if group.is_main:
                for line in _start_lines(folder, config, corpus, summary, is_resumed, recorded):
                    (echo or echo_to_stderr)(line)
                is_alone = launched or folder.model_card.exists()  # a finished run needs no others
                processes = 1 if is_alone else config.train.processes
                workers = stack.enter_context(start_workers(folder.path, processes))
                data = prepare_data(
                    folder, config, corpus, valid, summary.pairs, echo or echo_to_stderr
                )
        if group.is_main and not launched:
            group = stack.enter_context(workers.join())
        with group.raise_together():
            data = check_data(data) if group.is_main else open_data(folder, config)
        with limit_threads(config), keep_freed_memory(), _own_modes(group.device):
            Trainer(folder, data, group, echo, callbacks).run()
    return load(folder.path)


@contextmanager
def _own_modes(device: torch.device) -> Iterator[None]:
    """Compute with gradients whatever the caller's mode is; restore the caller's random state."""
    gpus = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(gpus), torch.inference_mode(False), torch.enable_grad():
        yield


def _origin(
    corpus: Corpus, valid: Corpus | None, summaries: Sequence[CorpusSummary]
) -> dict[str, Any]:
    """Return what settings.json records of the data."""
    return {
        "texts": [*corpus.names, *(valid.names if valid else ())],
        "fingerprints": [one.fingerprint for one in summaries],
        "valid": list(valid.names) if valid else [],
        "alignments": corpus.alignments,
        "pairs": summaries[0].pairs,
        "dataset": dict(corpus.dataset) if corpus.dataset else None,
    }


def _start_lines(
    folder: RunFolder,
    config: RunConfig,
    corpus: Corpus,
    summary: CorpusSummary,
    is_resumed: bool,
    recorded: int,
) -> Iterator[str]:
    """Yield what is about to be trained, and on how many processes."""
    verb, processes = "resuming" if is_resumed else "creating", config.train.processes
    number = count(processes, "process", "processes")
    share = f", {number}" if processes > 1 else ""
    yield f"{verb} {folder.path}: {count(summary.pairs, 'pair')}{share}"
    yield from corpus.notes
    if is_resumed and recorded not in (0, processes):
        yield f"the run had {recorded} so far; with {number}, results are equal only to rounding"


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
        with torch.device("cpu"):  # where equal seeds give equal parameters on every machine
            model = build(data.config.model, data.tokenizers.vocab_sizes)
        self.model = model.to(group.device)
        self.objective = Objective(
            self.model,
            self.config.label_smoothing,
            self.config.alignment_loss_weight,
            self.config.alignment_layer,
        ).train()
        self.optimizer = build_optimizer(self.model, self.config, group)
        self.checkpoints = Checkpoints(folder.checkpoints, data.identity)
        self.callbacks = callbacks
        self.bar_echo = echo
        self.echo = (echo or echo_to_stderr) if group.is_main else _discard
        self._started = time.monotonic()
        self._seconds_before = 0.0  # of earlier starts

    @property
    def seconds(self) -> float:
        """Seconds of training so far, over all starts."""
        return self._seconds_before + time.monotonic() - self._started

    def run(self) -> TrainState:
        """Train to the end, and write the selected parameters and the model card."""
        self._started = time.monotonic()
        state = self.checkpoints.resume(self.model, self.optimizer, self.echo)
        check_same_state(self.group, self.folder, state)
        if state is None and self.folder.model_card.exists():
            self.echo(f"{self.folder.path} is already finished, and its checkpoints were deleted")
            return TrainState(stop_reason="the checkpoints were deleted")
        if state is None:
            state = TrainState(max_steps=self.config.steps)
            self._announce(state)
            (state.seconds,) = self.group.broadcast(self.seconds)
        elif not state.stop_reason:
            self.echo(f"resuming from step {state.step}")
        self._seconds_before = state.seconds - (time.monotonic() - self._started)
        if self.config.compile:
            _compile(self.model)
        if not state.stop_reason:
            self._train(state)
        if self.group.is_main:
            self._finish(state)
        self.group.barrier(slow=True)
        return state

    def _announce(self, state: TrainState) -> None:
        """Print sizes and the estimated time; set the number of steps for a time limit."""
        data = self.data
        (seconds,) = self.group.broadcast(seconds_per_step(self.objective, data, self.group))
        if self.config.minutes is not None:
            validation = validation_seconds(seconds, data)
            state.plan = TimePlan(step_seconds=seconds, validation_seconds=validation)
            state.replan(self.config)
        samples = data.config.data.bpe_dropout_samples
        segmentations = f" ({samples} BPE-dropout segmentations of each)" if samples else ""
        num_train = len(data.train) // max(samples, 1)
        dropped = "".join(
            f"; dropped {number:,} ({reason})" for reason, number in data.train.dropped.items()
        )
        self.echo(
            f"{count(num_train, 'training pair')}{segmentations}, "
            f"{count(len(data.valid), 'validation pair')}{dropped}"
        )
        num_parameters = sum(parameter.numel() for parameter in self.model.parameters())
        sizes = sorted(set(data.tokenizers.vocab_sizes))
        vocabulary = "vocabulary of" if len(sizes) == 1 else "vocabularies of"
        self.echo(
            f"{data.config.model.kind}, {num_parameters:,} parameters, "
            f"{vocabulary} {' and '.join(f'{size:,}' for size in sizes)}"
        )
        if self.config.minutes is None:
            duration = format_duration(state.max_steps * seconds)
            self.echo(f"at most {count(state.max_steps, 'step')}, about {duration}")
        else:
            limit = format_duration(60 * self.config.minutes)
            self.echo(f"at most {limit}, about {count(state.max_steps, 'step')}")
            assert state.plan is not None
            if warning := state.plan.warning(state.max_steps, self.config.minutes):
                self.echo(warning)

    def _train(self, state: TrainState) -> None:
        """Run the loop with the callbacks of the main process."""
        sharding, objective, optimizer = None, self.objective, self.optimizer
        if self.config.shard and self.group.world_size > 1:
            build = partial(build_optimizer, config=self.config, group=self.group)
            sharding = Sharding(objective, optimizer, build, self.group)
            objective, optimizer = sharding.objective, sharding.optimizer
        bar = ProgressBar(state, self.bar_echo, self.config.minutes) if self.group.is_main else None
        with self._interruptions(state), bar or nullcontext(), stop_requested() as should_stop:
            TrainingLoop(
                objective,
                optimizer,
                self.data.train,
                self.config,
                state,
                self.group,
                validate=partial(validate, objective, self.data, self.group, self.model),
                checkpoints=self.checkpoints,
                sharding=sharding,
                callbacks=[] if bar is None else self._main_callbacks(bar),
                should_stop=should_stop,
            ).run()
        if not state.stop_reason:
            raise Interrupted(f"interrupted at step {state.step}; run the same command to resume")

    @contextmanager
    def _interruptions(self, state: TrainState) -> Iterator[None]:
        """Turn a KeyboardInterrupt that no signal handler has caught into `Interrupted`.

        Handlers belong to the main thread, and a second Ctrl-C does not wait for the step to end.
        """
        try:
            yield
        except KeyboardInterrupt as interrupt:
            steps = self.checkpoints.state_steps()
            where = f"the checkpoint of step {steps[-1]}" if steps else "its beginning"
            raise Interrupted(
                f"interrupted after step {state.step}; the same command resumes from {where}"
            ) from interrupt

    def _main_callbacks(self, bar: ProgressBar) -> list[Callback]:
        callbacks = [
            bar,
            self._log(),
            BestParameters(self.folder.model, self.model, self.data.identity),
            *self.callbacks,
        ]
        if self.config.snapshots:
            snapshots = Snapshots(self.folder.snapshot, self.model, identity=self.data.identity)
            callbacks.append(snapshots)
        return callbacks

    def _log(self) -> JsonlLog:
        return JsonlLog(self.folder.log, self.data.run_id, self.echo)

    def _finish(self, state: TrainState) -> None:
        """Select the final parameters; write them and the model card."""
        if self.folder.model_card.exists():
            self.echo(f"{self.folder.path} is already finished: {state.stop_reason}")
            return
        selection = select_parameters(self.folder, self.data, self.objective, state, self.echo)
        translations, references = translate_validation(self.model, self.data, self._seconds_left())
        about = {
            "selection": selection.name,
            "validation_loss": selection.result.loss,
            "validation_bleu": bleu(translations, references, chinese=is_chinese(references)),
        }
        state_dict = parameters.state_of(self.model)
        parameters.save(self.folder.model, state_dict, about, self.data.identity)
        self._log().finish(state)
        card = model_card(self.folder, state, selection, translations, references)
        files.write_file(self.folder.model_card, card)
        self.echo(
            f"finished after {count(state.step, 'step')} and {format_duration(self.seconds)}: "
            f"{state.stop_reason}; parameters: {selection.name}; see {self.folder.model_card}"
        )

    def _seconds_left(self) -> float:
        """Return the seconds left of the time limit; infinite without one."""
        minutes = self.config.minutes
        return inf if minutes is None else 60 * minutes - self.seconds


def _compile(model: nn.Module) -> None:
    """Compile the model's parts, except embeddings: a lookup gains nothing from it."""
    for part in model.children():
        if not isinstance(part, Embedding):
            part.compile(dynamic=True)
