"""Training with parameters and optimizer state sharded over two processes."""

import json

import pytest

from helpers.tiny_corpus import TINY, tiny_corpus, write_tsv
from helpers.training import (
    assert_close,
    checkpoints_of,
    discard,
    load_parameters,
    stop_after,
)
from regard.config import RunConfig, parse_assignment
from regard.errors import RegardError
from regard.runs import RunFolder, parameters
from regard.training import Interrupted, train
from regard.training.setup import check_config
from regard.training.sharding import Sharding, local_tensor

NO_DROPOUT = "model.dropout=0.0"


def train_with(out, processes, *assignments, corpus=None):
    settings = [TINY, *map(parse_assignment, (NO_DROPOUT, *assignments))]
    train(corpus or tiny_corpus(), out, processes=processes, settings=settings, echo=discard)


def losses_of(out):
    entries = map(json.loads, RunFolder(out).log.read_text().splitlines())
    losses = [entry["valid_loss"] for entry in entries if "valid_loss" in entry]
    assert len(losses) > 0
    return losses


def state_of(out, step):
    return parameters.load(checkpoints_of(out).state_path(step))[0]


@pytest.mark.train
@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "assignments",
    [
        # layers with parts of their own, accumulated gradients, clipping that bites, BLEU
        (
            "model.layers=2",
            "model.norm=pre",
            "train.accumulation_steps=2",
            "train.max_grad_norm=0.1",
            "train.validation_metric=bleu",
        ),
        ("train.optimizer=muon", "model.tie_output=false"),
        ("model.kind=recurrent", "model.score=additive"),
    ],
    ids=["adam", "muon", "recurrent"],
)
def test_two_sharded_processes_train_to_the_parameters_of_one(assignments, tmp_path, monkeypatch):
    tsv = write_tsv(tmp_path / "pairs.tsv")
    with tsv.open("a") as file:  # shares of unequal length
        for words in (40, 30, 20):
            file.write(f"{'the dog ' * words}\t{'le chien ' * words}\n")
    single, sharded = tmp_path / "single", tmp_path / "sharded"
    shares = []

    class Recorded(Sharding):
        def gather_parameters(self):
            own = sum(local_tensor(each).numel() for each in self.objective.parameters())
            shares.append(own / sum(each.numel() for each in self.objective.parameters()))
            super().gather_parameters()

    monkeypatch.setattr("regard.training.trainer.Sharding", Recorded)
    train_with(single, 1, *assignments, "train.steps=8", corpus=tsv)
    train_with(sharded, 2, *assignments, "train.steps=8", "train.shard=true", corpus=tsv)
    assert losses_of(single) == pytest.approx(losses_of(sharded), rel=1e-4)
    assert_close(load_parameters(single), load_parameters(sharded))
    assert len(shares) > 0 and {round(share, 1) for share in shares} == {0.5}
    before, after = state_of(single, 8), state_of(sharded, 8)
    assert {name: value.shape for name, value in before.items()} == {
        name: value.shape for name, value in after.items()
    }


@pytest.mark.train
@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("first", "second"),
    [((2, "true"), (1, "false")), ((1, "false"), (2, "true")), ((2, "true"), (2, "false"))],
)
def test_run_resumes_sharded_or_not(first, second, tmp_path, monkeypatch):
    whole, out = tmp_path / "whole", tmp_path / "resumed"
    train_with(whole, 1, "train.optimizer=muon")
    with monkeypatch.context() as patched:
        patched.setattr("regard.training.trainer.stop_requested", stop_after(out, 6))
        with pytest.raises(Interrupted, match="interrupted at step 6"):
            train_with(out, first[0], "train.optimizer=muon", f"train.shard={first[1]}")
    train_with(out, second[0], "train.optimizer=muon", f"train.shard={second[1]}")
    assert losses_of(whole) == pytest.approx(losses_of(out), rel=1e-4)
    assert_close(load_parameters(whole), load_parameters(out))
    assert RunFolder(out).read_settings()[0].train.shard is (second[1] == "true")


@pytest.mark.train
@pytest.mark.usefixtures("unchecked")
def test_one_process_has_nothing_to_shard(tmp_path):
    plain, sharded = tmp_path / "plain", tmp_path / "sharded"
    train_with(plain, 1, "train.steps=4")
    train_with(sharded, 1, "train.steps=4", "train.shard=true")
    assert losses_of(plain) == losses_of(sharded)


@pytest.mark.parametrize("other", ["compile", "snapshots"])
def test_sharding_refuses_what_needs_the_complete_model(other):
    config = RunConfig.from_dict({"train": {"shard": True, other: True}})
    with pytest.raises(RegardError, match=f"train.shard must be false with train.{other}"):
        check_config(config)
