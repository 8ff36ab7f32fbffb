"""Training in two processes, started by torchrun."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

from helpers.tiny_corpus import TINY, write_tsv
from helpers.training import (
    assert_close,
    checkpoints_of,
    command,
    discard,
    kill_when,
    load_parameters,
    run_to_end,
    two_processes,
)
from regard.config import parse_assignment
from regard.runs import RunFolder
from regard.training import train

pytestmark = [pytest.mark.train, pytest.mark.usefixtures("unchecked")]

NO_DROPOUT = "model.dropout=0.0"


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_two_processes_train_to_the_parameters_of_one(optimizer, tmp_path):
    """Without dropout the losses agree to rounding, also with shards of unequal length."""
    tsv = write_tsv(tmp_path / "pairs.tsv")
    with tsv.open("a") as file:
        for words in (40, 30, 20):
            file.write(f"{'the dog ' * words}\t{'le chien ' * words}\n")
    sets = (NO_DROPOUT, "train.steps=8", f"train.optimizer={optimizer}")
    single, double = tmp_path / "single", tmp_path / "double"
    train(tsv, single, settings=[TINY, *map(parse_assignment, sets)], echo=discard)
    run_to_end(two_processes(command(tsv, double, *sets)))
    losses = [
        [entry["valid_loss"] for entry in RunFolder(run).read_log() if "valid_loss" in entry]
        for run in (single, double)
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert_close(load_parameters(single), load_parameters(double))


def test_run_resumes_with_another_number_of_processes(tmp_path):
    tsv = write_tsv(tmp_path / "pairs.tsv")
    sets = (NO_DROPOUT, "train.steps=16")
    whole, out = tmp_path / "whole", tmp_path / "killed"
    train(tsv, whole, settings=[TINY, *map(parse_assignment, sets)], echo=discard)
    has_checkpoint = checkpoints_of(out).state_path(4).exists
    assert kill_when(command(tsv, out, *sets), has_checkpoint) == -signal.SIGKILL
    assert "resuming from step" in run_to_end(two_processes(command(tsv, out, *sets)))
    assert_close(load_parameters(whole), load_parameters(out))


def test_lost_process_ends_the_others_with_one_line(tmp_path):
    tsv, out = write_tsv(tmp_path / "pairs.tsv"), tmp_path / "lost"
    start = two_processes(command(tsv, out, "train.steps=100000"))
    process = subprocess.Popen(start, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not checkpoints_of(out).state_path(4).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    subprocess.run(["kill", "-9", children[-1]], check=True)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "another process of this training run ended" in stderr


def test_two_processes_end_together_at_a_time_limit(tmp_path):
    tsv, out = write_tsv(tmp_path / "pairs.tsv"), tmp_path / "limited"
    stderr = run_to_end(two_processes(command(tsv, out, "train.minutes=0.1")))
    assert "the time limit of 0.1 minutes was reached" in stderr
    assert RunFolder(out).model_card.exists()
