"""The training benchmarks run at tiny size; JoeyNMT itself is not needed."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.tiny_corpus import TINY, tiny_pairs, write_tsv
from regard.cli import app
from regard.training import train

BENCH = Path(__file__).parents[2] / "bench"

pytestmark = pytest.mark.train


def run_script(script, *options, **environment):
    """Run a benchmark; return what it prints."""
    done = subprocess.run(
        [sys.executable, str(BENCH / script), *map(str, options)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_training_benchmark_prints_a_row_per_trainer():
    lines = run_script("train.py", "--smoke", "--cores", "1").splitlines()
    rows = [line for line in lines if line.startswith("| regard, ")]
    assert [row.split(" | ")[0] for row in rows] == [
        "| regard, same dropout, 1 × 1",
        "| regard, dropout of the recipe, 1 × 1",
    ]
    for row in rows:
        assert re.fullmatch(r"\| [^|]+ \| [1-9]\d* \| – \| \d+\.\d% \| \d+% \|", row)
    assert lines[-1].endswith(" MFLOP.")


JOEYNMT = {
    "__init__": "",
    "batch": """
class Batch:
    ntokens = 7
    trg = type("Tokens", (), {"numel": lambda self: 8})()
""",
    "config": """
from types import SimpleNamespace

def parse_global_args(config):
    return SimpleNamespace(
        config=config, model_dir=config["model_dir"], device="cpu", autocast={}, seed=0,
        train=config["training"], test=config["testing"],
    )

def set_validation_args(test):
    return test
""",
    "prediction": """
import torch

def prepare(args, rank, mode):
    data = args.config["data"]
    with open(f"{data['train']}.{data['src']['lang']}") as file:
        assert file.readline().strip()
    return torch.nn.Linear(2, 3), object(), None, None
""",
    "training": """
from joeynmt.batch import Batch

class TrainManager:
    def __init__(self, **arguments):
        assert arguments["train_args"]["batch_type"] == "token"

    def _train_step(self, batch):
        return 0.0, 1

    def train_and_validate(self, train_data, valid_data):
        while True:
            self._train_step(Batch())
""",
}
"""Modules with the functions of JoeyNMT 2.3 that the benchmark calls."""


def test_training_benchmark_takes_turns_with_joeynmt(tmp_path):
    package = tmp_path / "joeynmt"
    package.mkdir()
    for name, code in JOEYNMT.items():
        (package / f"{name}.py").write_text(code)
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    options = ("--smoke", "--cores", "1", "--joeynmt", sys.executable)
    output = run_script("train.py", *options, PYTHONPATH=path)
    row = r"^\| JoeyNMT \| [1-9]\d* \| 1\.00 \| 12\.5% \| \d+% \|$"
    assert re.search(row, output, re.MULTILINE), output


def test_training_benchmark_without_data_is_refused():
    done = subprocess.run([sys.executable, str(BENCH / "train.py")], capture_output=True, text=True)
    assert done.returncode == 2
    assert "--data is required, except with --smoke" in done.stderr


def test_quality_benchmark_prints_bleu_and_the_command_that_reproduces_it():
    head, _, row = run_script("quality.py", "--smoke").splitlines()
    assert head.startswith("| run | BLEU | signature |")
    assert re.match(r"\| run \| \d+\.\d\d", row)
    (command,) = re.findall(r"`(regard train .*?)`", row)
    assert command.startswith("regard train train.en.gz train.de.gz ")
    for setting in ("model.width=16", "train.steps=3", "search.beam_size=1"):
        assert f"--set {setting}" in command
    assert command.endswith("--out run")


def test_printed_command_of_a_run_with_alignments_names_the_same_run(tmp_path, monkeypatch):
    pairs = write_tsv(tmp_path / "pairs.tsv")
    links = tmp_path / "links.txt"
    links.write_text("0-0 1-2 2-1 3-3 4-4 5-5\n" * len(tiny_pairs()))
    valid = [tmp_path / "valid.en", tmp_path / "valid.fr"]
    valid[0].write_text("the cat sees the dog\n")
    valid[1].write_text("le chat voit le chien\n")
    updates = [TINY, {"train": {"steps": 2}}]
    out = tmp_path / "run"
    train(pairs, out, valid=valid, alignments=links, settings=updates, echo=lambda line: None)

    printed = run_script("quality.py", out, *valid)
    (command,) = re.findall(r"`(regard train .*?)`", printed)
    assert "alignment_loss_weight" not in command  # the option sets it
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, shlex.split(command)[1:])
    assert result.exit_code == 0, result.output
    assert "run is already finished" in result.stderr
