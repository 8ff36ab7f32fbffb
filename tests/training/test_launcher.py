"""Training in several processes that `train` starts by itself."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
import torch

from helpers.tiny_corpus import TINY, tiny_corpus, write_tsv
from helpers.training import (
    ONE_THREAD,
    START_TIMEOUT_SECONDS,
    are_equal,
    assert_close,
    checkpoints_of,
    command,
    discard,
    load_parameters,
    run_to_end,
    stop_after,
    train_tiny,
    two_processes,
)
from regard.config import RunConfig
from regard.errors import RegardError
from regard.runs import RunFolder
from regard.training import Callback, Interrupted, launcher, train
from regard.training.defaults import DEFAULTS_BY_SIZE
from regard.training.launcher import choose_processes
from regard.training.setup import recorded_processes, resolve_processes

NO_LIMIT = "train.steps=1000000000"


@pytest.fixture
def cores(monkeypatch):
    """Return a function that sets the number of usable cores, without GPUs."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    return lambda count: monkeypatch.setattr(launcher, "usable_cores", lambda: count)


def test_defaults_of_all_sizes_use_two_cores(cores):
    cores(2)
    for _, settings in DEFAULTS_BY_SIZE:
        assert choose_processes(RunConfig.from_dict(settings)) == 2


def test_shares_of_a_batch_stay_large_enough(cores):
    cores(64)
    for batch_tokens, expected in ((500, 1), (1024, 2), (2048, 4), (10**6, launcher.MAX_PROCESSES)):
        assert choose_processes(RunConfig.from_dict({"train": {"batch_tokens": batch_tokens}})) == (
            expected
        )


@pytest.mark.parametrize("limit", [{"steps": 5}, {"minutes": 0.2}], ids=["steps", "minutes"])
def test_short_training_has_one_process(limit, cores):
    cores(8)
    assert choose_processes(RunConfig.from_dict({"train": limit})) == 1


def test_several_gpus_have_a_process_each(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 3)
    assert choose_processes(RunConfig()) == 3
    requested = RunConfig.from_dict({"train": {"processes": 7}})
    assert resolve_processes(requested, None, 0).train.processes == 3


@pytest.mark.parametrize(
    ("requested", "launched", "recorded", "expected"),
    [(0, None, 0, 4), (0, None, 3, 3), (2, None, 3, 2), (2, 5, 3, 5), (0, 1, 3, 1)],
    ids=["new run", "resumed", "requested", "torchrun", "torchrun with one"],
)
def test_number_of_processes_by_precedence(requested, launched, recorded, expected, cores):
    cores(4)
    config = RunConfig.from_dict({"train": {"processes": requested}})
    assert resolve_processes(config, launched, recorded).train.processes == expected


def test_tiny_training_starts_no_process_and_records_one(tmp_path, unchecked, monkeypatch):
    monkeypatch.setattr("subprocess.Popen", None)
    train_tiny(tmp_path / "run")
    assert recorded_processes(RunFolder(tmp_path / "run")) == 1


def test_worker_that_cannot_start_is_reported_with_its_last_line(tmp_path, unchecked, monkeypatch):
    monkeypatch.setattr(launcher, "_START_WORKER", "import sys; sys.exit('no module\\nhere\\n')")
    message = r"^another process of this training run ended \(here\); run the same command"
    with pytest.raises(RegardError, match=message):
        train_tiny(tmp_path / "run", "train.processes=2")
    assert not torch.distributed.is_initialized()


def test_interrupt_does_not_wait_for_workers_that_are_starting(tmp_path, unchecked, monkeypatch):
    monkeypatch.setattr(launcher, "_START_WORKER", "import time; time.sleep(60)")
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt), launcher.start_workers(tmp_path, 2):
        raise KeyboardInterrupt
    assert time.monotonic() - start < launcher.EXIT_TIMEOUT_SECONDS / 2


@pytest.mark.train
@pytest.mark.usefixtures("unchecked")
class TestTwoProcesses:
    def test_interrupted_run_resumes_to_the_same_parameters(self, tmp_path, monkeypatch):
        """The second start does not name the number of processes: the run has recorded it."""
        whole, out, lines = tmp_path / "whole", tmp_path / "run", []
        environment = {**os.environ}
        train_tiny(whole, "train.processes=2", "train.optimizer=muon")
        with monkeypatch.context() as patch:
            patch.setattr("regard.training.trainer.stop_requested", stop_after(out, 7))
            with pytest.raises(Interrupted, match="interrupted at step 7"):
                train_tiny(out, "train.processes=2", "train.optimizer=muon")
        train_tiny(out, "train.optimizer=muon", echo=lines.append)
        assert f"resuming {out}: 225 pairs, 2 processes" in lines
        assert "resuming from step 7" in lines
        assert are_equal(load_parameters(whole), load_parameters(out))
        assert not torch.distributed.is_initialized()
        leaked = {name for name in os.environ if os.environ[name] != environment.get(name)}
        assert leaked <= {"TORCHINDUCTOR_CACHE_DIR", "PYTEST_CURRENT_TEST"}  # which torch sets

    def test_parameters_equal_those_of_torchrun_and_nearly_those_of_one(self, tmp_path):
        tsv, one = write_tsv(tmp_path / "pairs.tsv"), tmp_path / "one"
        double, elastic = tmp_path / "double", tmp_path / "elastic"
        no_dropout = {"model": {"dropout": 0.0}}
        train(tsv, one, settings=[TINY, no_dropout], echo=discard)
        train(tsv, double, processes=2, settings=[TINY, no_dropout], echo=discard)
        run_to_end(two_processes(command(tsv, elastic, "model.dropout=0.0")))
        assert are_equal(load_parameters(double), load_parameters(elastic))
        assert_close(load_parameters(one), load_parameters(double))
        assert recorded_processes(RunFolder(elastic)) == 2

    def test_other_number_resumes_with_a_note_and_is_recorded(self, tmp_path, monkeypatch):
        out, lines = tmp_path / "run", []
        with monkeypatch.context() as patch:
            patch.setattr("regard.training.trainer.stop_requested", stop_after(out, 3))
            with pytest.raises(Interrupted):
                train_tiny(out, "train.processes=2")
        train_tiny(out, "train.processes=1", echo=lines.append)
        note = "the run had 2 so far; with 1 process, results are equal only to rounding"
        assert note in lines
        assert recorded_processes(RunFolder(out)) == 1

    def test_error_of_a_callback_ends_the_workers(self, tmp_path):
        class Failing(Callback):
            def on_step(self, state, result):
                raise LookupError("from the callback")

        with pytest.raises(LookupError, match="from the callback"):
            train(
                tiny_corpus(),
                tmp_path / "run",
                processes=2,
                settings=[TINY],
                callbacks=[Failing()],
                echo=discard,
            )
        assert not torch.distributed.is_initialized()
        assert children(os.getpid()) == []

    def test_callback_ends_training_in_all_processes(self, tmp_path):
        class StopAtStep3(Callback):
            def on_step(self, state, result):
                if state.step == 3:
                    state.stop_reason = "three steps are enough"

        lines = []
        options = {"processes": 2, "settings": [TINY], "echo": lines.append}
        for _ in range(2):  # the second call finds a finished run
            train(tiny_corpus(), tmp_path / "run", callbacks=[StopAtStep3()], **options)
        assert any(
            line.startswith("finished after 3 steps") and "three steps are enough" in line
            for line in lines
        )
        assert lines[-1].endswith("is already finished: three steps are enough")
        assert children(os.getpid()) == []

    def test_lost_worker_ends_training_with_one_line(self, started):
        process, workers = started()
        os.kill(workers[0], signal.SIGKILL)
        _, stderr = process.communicate(timeout=START_TIMEOUT_SECONDS)
        assert process.returncode == 1
        assert stderr.splitlines()[-1] == (
            "regard: another process of this training run ended (killed by SIGKILL); "
            "run the same command to resume from the last checkpoint"
        )
        assert "Traceback" not in stderr

    def test_workers_exit_when_the_calling_process_is_killed(self, started):
        process, workers = started()
        process.kill()
        process.communicate()
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while any(map(is_running, workers)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(map(is_running, workers))

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_signal_writes_one_checkpoint_and_ends_all(self, number, started):
        process, workers = started(start_new_session=True)
        os.killpg(process.pid, number)  # as Ctrl-C in a terminal does
        _, stderr = process.communicate(timeout=START_TIMEOUT_SECONDS)
        assert process.returncode == 130
        assert "interrupted at step" in stderr.splitlines()[-1]
        assert "Traceback" not in stderr
        assert not any(map(is_running, workers))


@pytest.fixture
def started(tmp_path):
    """Return a function that starts an endless training in two processes, until a checkpoint."""
    processes = []

    def start(**options):
        tsv, out = write_tsv(tmp_path / "pairs.tsv"), tmp_path / "run"
        endless = [*command(tsv, out, NO_LIMIT, "train.patience=0"), "--processes", "2"]
        process = subprocess.Popen(
            endless, stderr=subprocess.PIPE, text=True, env=ONE_THREAD, **options
        )
        processes.append(process)
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while not checkpoints_of(out).state_path(4).exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        workers = children(process.pid)
        assert len(workers) == 1
        return process, workers

    yield start
    for process in processes:
        process.kill()


def children(pid):
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split() if is_running(int(child))]


def is_running(pid):
    """Return whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
