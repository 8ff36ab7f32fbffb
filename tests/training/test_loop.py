import math

import numpy as np
import pytest
import torch

from helpers.tiny_corpus import SMALL, corpus
from regard.config import RunConfig
from regard.data import batch_by_length, collate
from regard.models import build
from regard.runs import RunFolder
from regard.training.distributed import Distributed
from regard.training.loop import Hooks, Training, validation_loss
from regard.training.objective import Objective
from regard.training.setup import prepare
from regard.training.state import Progress

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture
def prepared(tmp_path):
    settings = RunConfig.from_dict(SMALL[0])
    return prepare(RunFolder(tmp_path), settings, corpus(), None, 225)


def training(prepared, progress=None, crew=None, validate=None, save=None, **train):
    torch.manual_seed(0)
    settings = prepared.settings.update({"train": train})
    model = build(settings.model, prepared.tokenizers.vocab_sizes)
    for part in model.modules():
        if hasattr(part, "dropout"):
            part.dropout = 0.0
    entries = []
    return Training(
        Objective(model, 0.1).train(),
        torch.optim.AdamW(model.parameters(), eps=1e-9),
        prepared.train,
        settings.train,
        progress or Progress(planned=settings.train.steps),
        crew or Distributed(),
        Hooks(entries.append, validate or (lambda _: 1.0), save or (lambda _: None)),
    ), entries


def test_every_pair_is_learned_once_in_an_epoch(prepared, monkeypatch):
    order = batch_by_length(prepared.train, 256, seed=3, epoch=0)
    seen, plain = [], collate

    def noted(pairs, rows, linked=False):
        seen.extend(rows.tolist())
        return plain(pairs, rows, linked)

    monkeypatch.setattr("regard.training.loop.collate", noted)
    training(prepared, steps=len(order), validate_every=1000)[0].run()
    assert sorted(seen) == list(range(len(prepared.train)))


def test_accumulated_batches_make_the_step_of_one_large_batch(prepared):
    """Two batches in an update, and one batch of both, change the weights alike."""
    order = batch_by_length(prepared.train, 256, seed=3, epoch=0)
    one, _ = training(prepared, steps=1, accumulation_steps=2)
    one.run()
    two, _ = training(prepared, steps=1)
    two._updates = lambda: iter([[np.concatenate(order[:2])]])
    two.batches = 1
    two.run()
    wanted = dict(two.objective.named_parameters())
    for name, weight in one.objective.named_parameters():
        if not name.endswith("key.bias"):  # which the softmax does not see: its gradient is noise
            torch.testing.assert_close(weight, wanted[name], rtol=1e-3, atol=1e-5)


def test_the_parts_of_a_crew_sum_to_the_gradient_of_the_whole(prepared):
    rows = batch_by_length(prepared.train, 256, seed=3, epoch=0)[0]
    whole, _ = training(prepared)
    whole.objective(whole._part(rows)[0]).learned.backward()
    wanted = [weight.grad.clone() for weight in whole.objective.parameters()]
    whole.objective.zero_grad()
    for rank in range(3):
        part, _ = training(prepared, crew=Distributed(rank, 3))
        mine, weight = part._part(rows)
        (whole.objective(mine).learned * weight).backward()
    for weight, grad in zip(whole.objective.parameters(), wanted, strict=True):
        torch.testing.assert_close(weight.grad, grad, rtol=1e-4, atol=1e-4)


def test_a_process_without_pairs_counts_nothing(prepared):
    rows = batch_by_length(prepared.train, 256, seed=3, epoch=0)[0][:2]
    assert training(prepared, crew=Distributed(2, 3))[0]._part(rows)[1] == 0.0


def test_it_validates_and_saves_when_due_and_at_the_end(prepared):
    validated, saved = [], []
    run, entries = training(
        prepared,
        steps=7,
        validate_every=3,
        validate=lambda progress: validated.append(progress.step) or 1.0 / progress.step,
        save=lambda progress: saved.append((progress.step, progress.finished)),
    )
    progress = run.run()
    assert validated == [3, 6, 7]
    assert saved[-1] == (7, "all planned steps are done")
    assert [entry["step"] for entry in entries] == list(range(1, 8))
    assert progress.best_step == 7


def test_it_validates_at_the_end_of_each_epoch_however_many_batches_it_has(prepared):
    ends, count = [], 0
    for epoch in range(6):
        count += -(-len(batch_by_length(prepared.train, 256, seed=3, epoch=epoch)) // 2)
        ends.append(count)
    assert len({b - a for a, b in zip([0, *ends], ends, strict=False)}) > 1  # or nothing is shown
    validated = []
    run, _ = training(
        prepared,
        steps=ends[-1],
        accumulation_steps=2,
        validate_every=0,
        validate=lambda progress: validated.append(progress.step) or 1.0,
    )
    run.run()
    assert validated == ends


def test_the_loss_that_is_told_is_the_plain_one_per_token(prepared):
    run, entries = training(prepared, steps=1)
    rows = batch_by_length(prepared.train, 256, seed=3, epoch=0)[0]
    part = collate(prepared.train, rows)
    with torch.no_grad():
        wanted = float(run.objective(part).plain) / part.target_tokens
    run.run()
    assert entries[0]["loss"] == pytest.approx(wanted, rel=1e-5)
    assert entries[0]["tokens"] == part.target_tokens


def test_validation_weighs_every_token_alike_and_leaves_the_mode_as_it_was(prepared):
    objective = training(prepared)[0].objective
    everything = collate(prepared.valid, np.arange(len(prepared.valid)))
    objective.eval()
    with torch.no_grad():
        wanted = float(objective(everything).plain) / everything.target_tokens
    objective.train()
    for tokens in (40, 4096):
        told = validation_loss(objective, prepared.valid, tokens, Distributed())
        assert told == pytest.approx(wanted, rel=1e-5)
    assert objective.training and math.isfinite(wanted)
