"""The examples run, and show what they say."""

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest
import torch

FOLDER = Path(__file__).parents[1] / "examples"

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run an example in an empty folder; give what it printed."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)

    def run(name):
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.main()
        return capsys.readouterr().out

    return run


def test_every_example_has_a_test():
    tested = re.findall(r'run\("(\w+)"\)', Path(__file__).read_text())
    assert {path.stem for path in FOLDER.glob("*.py")} == set(tested)


def test_look_example_prints_scores_and_masks(run):
    output = run("look")
    for title in ("scaled_dot", "cosine", "gaussian", "each word and the two before it"):
        assert title in output
    assert output.endswith("query 5 may not attend to key 1: masked by window(2)\n")


def test_kernel_regression_example_learns_the_best_bandwidth(run):
    average, fixed, learned = map(float, re.findall(r"error ([\d.]+)", run("kernel_regression")))
    assert learned < fixed < average


@pytest.mark.train
def test_reverse_example_learns_antidiagonal_attention(run):
    output = run("reverse")
    source, output_words = re.search(r"^(.*)  ->  (.*)$", output, flags=re.MULTILINE).groups()
    assert output_words.split() == source.split()[::-1]
    rows = [line.split()[1:] for line in output.splitlines() if line.split()[:1] != ["step"]]
    numbers = [[float(n) for n in row if re.fullmatch(r"[01]\.\d\d|0", n)] for row in rows]
    table = torch.tensor([row for row in numbers if len(row) == 5])
    assert table.argmax(1).tolist() == [4, 3, 2, 1, 0]


@pytest.mark.train
def test_induction_example_stops_the_copying(run):
    output = run("induction_heads")
    before, after = (int(x) for x in re.findall(r": (\d+)%$", output, flags=re.MULTILINE))
    assert before > 85 and after < 15
    scores = re.findall(r"layers\.(\d)\.attention, head \d +([\d.]+) +\d+%", output)
    best_layer, _ = max(scores, key=lambda row: float(row[1]))
    assert len(scores) == 8 and best_layer == "1"


def test_watch_example_writes_a_page(run, tmp_path):
    output = run("watch_a_model")
    assert "decoder.layers.1.multihead_attn" in output and "3 × 5" in output
    page = (tmp_path / "watched.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and '"chat"' in page


class RecordingWriter:
    """Stands in for TensorBoard's SummaryWriter."""

    instances: ClassVar[list["RecordingWriter"]] = []

    def __init__(self, folder, purge_step=None):
        self.folder, self.purge_step = folder, purge_step
        self.scalars, self.calls = [], []
        self.instances.append(self)

    def add_scalar(self, name, value, step):
        self.scalars.append((name, value, step))

    def flush(self):
        self.calls.append("flush")

    def close(self):
        self.calls.append("close")


@pytest.mark.train
def test_tensorboard_example_logs_every_step_and_validation(run, monkeypatch, tmp_path):
    module = SimpleNamespace(SummaryWriter=RecordingWriter)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    assert run("tensorboard_logger") == "tensorboard --logdir tensorboard-run\n"
    (writer,) = RecordingWriter.instances
    steps = {name: [s for n, _, s in writer.scalars if n == name] for name, _, _ in writer.scalars}
    every = list(range(1, 41))
    assert steps == {"loss/training": every, "learning rate": every, "loss/validation": [20, 40]}
    losses = [value for name, value, _ in writer.scalars if name == "loss/training"]
    assert losses[-1] < losses[0]
    assert writer.purge_step == 1 and writer.calls == ["flush", "flush", "close"]
    assert (tmp_path / "tensorboard-run" / "README.md").exists()


def test_notebook_runs(capsys):
    notebook = json.loads((FOLDER / "where_does_it_look.ipynb").read_text())
    cells = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    names: dict[str, object] = {}
    for cell in cells:
        exec(cell, names)
    assert torch.equal(names["watched"], names["encoder"](names["vectors"][None]))
    assert names["weights"].shape == (1, 4, 6, 6)
    assert len(names["trace"].maps) == 2
    assert not any(c.get("outputs") for c in notebook["cells"])  # none are kept in the repository
