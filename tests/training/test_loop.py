import math

import numpy as np
import pytest
import torch

from helpers.training import discard
from helpers.training_loop import make_loop
from regard.data import batch_by_length, collate
from regard.training import Callback, Checkpoints, ValidationResult
from regard.training.distributed import Distributed
from regard.training.loop import Update
from regard.training.validation import validation_loss

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture
def data(make_data):
    return make_data()


def test_every_pair_is_trained_on_once_per_epoch(data, monkeypatch):
    batches = batch_by_length(data.train, 256, seed=3, epoch=0)
    rows_seen = []

    def record(pairs, rows, linked=False):
        rows_seen.extend(rows.tolist())
        return collate(pairs, rows, linked)

    monkeypatch.setattr("regard.training.loop.collate", record)
    make_loop(data, steps=len(batches), validate_every=1000)[0].run()
    assert sorted(rows_seen) == list(range(len(data.train)))


def test_gradient_accumulation_equals_one_large_batch(data):
    batches = batch_by_length(data.train, 256, seed=3, epoch=0)
    accumulated, _ = make_loop(data, steps=1, accumulation_steps=2)
    accumulated.run()
    at_once, _ = make_loop(data, steps=1)
    at_once.step(Update([np.concatenate(batches[:2])], False))
    expected = dict(at_once.objective.named_parameters())
    for name, parameter in accumulated.objective.named_parameters():
        if not name.endswith("key.bias"):  # softmax ignores it: its gradient is rounding noise
            torch.testing.assert_close(parameter, expected[name], rtol=1e-3, atol=1e-5)


class OneOfSeveral(Distributed):
    """One process of a group, without the others."""

    def wrap(self, model):
        return model

    def all_reduce(self, *values):
        return list(values)

    def broadcast(self, *values):
        return list(values)


class GradientRecorder(torch.optim.SGD):
    """Keeps the gradients instead of changing the parameters."""

    def step(self, closure=None):
        (group,) = self.param_groups
        self.gradients = [parameter.grad.clone() for parameter in group["params"]]


def gradients_of(data, rows, rank, world_size):
    """Return what one process contributes to the average over all processes."""
    group = OneOfSeveral(rank, world_size)
    loop, _ = make_loop(data, group, steps=10, validate_every=100, max_grad_norm=0.0)
    loop.optimizer = GradientRecorder(loop.objective.parameters())
    loop.step(Update([rows], False))
    return [gradient / world_size for gradient in loop.optimizer.gradients]


def test_gradients_of_all_shards_average_to_that_of_the_batch(data):
    rows = batch_by_length(data.train, 256, seed=3, epoch=0)[0]
    whole = gradients_of(data, rows, 0, 1)
    shards = [gradients_of(data, rows, rank, 3) for rank in range(3)]
    for expected, *parts in zip(whole, *shards, strict=True):
        torch.testing.assert_close(sum(parts), expected, rtol=1e-4, atol=1e-5)


def test_process_without_pairs_contributes_zero_gradients(data):
    rows = batch_by_length(data.train, 256, seed=3, epoch=0)[0][:2]
    assert not any(gradient.any() for gradient in gradients_of(data, rows, 2, 3))


def test_gradients_are_clipped_to_the_maximum_norm(data):
    rows = batch_by_length(data.train, 256, seed=3, epoch=0)[0]
    norms = []
    for max_grad_norm in (0.0, 0.01):
        loop, _ = make_loop(data, steps=10, validate_every=100, max_grad_norm=max_grad_norm)
        loop.optimizer = GradientRecorder(loop.objective.parameters())
        loop.step(Update([rows], False))
        norms.append(torch.cat([g.flatten() for g in loop.optimizer.gradients]).norm().item())
    assert norms[0] > 0.1
    assert norms[1] == pytest.approx(0.01, rel=1e-3)


def test_loop_validates_and_checkpoints_where_due_and_at_the_end(data, tmp_path):
    losses = iter([3.0, 2.0, 1.0])
    loop, recorder = make_loop(
        data,
        steps=7,
        validate_every=3,
        validate=lambda: ValidationResult(next(losses)),
        checkpoints=Checkpoints(tmp_path),
    )
    state = loop.run()
    assert recorder.steps_of("validation") == recorder.steps_of("checkpoint") == [3, 6, 7]
    assert recorder.steps_of("step") == list(range(1, 8))
    assert recorder.events[0] == ("start", 0) and recorder.events[-1] == ("end", 7)
    assert (state.best_step, state.stop_reason) == (7, "the last step was reached")
    assert Checkpoints(tmp_path).state_steps() == [6, 7]


def test_events_of_a_step_come_in_order(data):
    loop, recorder = make_loop(data, steps=2, validate_every=1)
    loop.run()
    names = [name for name, step in recorder.events if step == 1]
    assert names == ["step", "validation", "checkpoint"]


def test_requested_stop_writes_a_checkpoint_after_the_step(data, tmp_path):
    polls = iter([False, False, True])
    loop, recorder = make_loop(
        data,
        steps=9,
        validate_every=100,
        should_stop=lambda: next(polls),
        checkpoints=Checkpoints(tmp_path),
    )
    state = loop.run()
    assert (state.step, state.stop_reason) == (3, "")
    assert recorder.steps_of("checkpoint") == Checkpoints(tmp_path).state_steps() == [3]
    assert recorder.events[-1] == ("end", 3)


def test_early_stopping_ends_the_loop(data):
    loop, recorder = make_loop(data, steps=100, validate_every=2, patience=3)
    state = loop.run()
    assert recorder.steps_of("validation") == [2, 4, 6, 8]
    assert state.stop_reason == "early stopping: no improvement in 3 validations"


class Stopper(Callback):
    """Asks for the end of training at one event of one step."""

    def __init__(self, event, step):
        self.step = step
        setattr(self, event, self._request)

    def _request(self, state, result=None):
        if state.step == self.step:
            state.stop_reason = "enough"


@pytest.mark.parametrize(
    ("event", "last"), [("on_start", 1), ("on_step", 3), ("on_validation", 4), ("on_checkpoint", 5)]
)
def test_callback_ends_training_with_a_validated_checkpoint(data, tmp_path, event, last):
    loop, recorder = make_loop(data, steps=9, validate_every=4, checkpoints=Checkpoints(tmp_path))
    step = {"on_start": 0, "on_step": 3}.get(event, 4)
    loop.callbacks = [recorder, Stopper(event, step)]
    state = loop.run()
    assert (state.step, state.stop_reason) == (last, "enough")
    assert recorder.steps_of("validation")[-1] == recorder.steps_of("checkpoint")[-1] == last
    resumed = Checkpoints(tmp_path).resume(loop.objective.model, loop.optimizer, discard)
    assert resumed.stop_reason == "enough"


def test_zero_validate_every_validates_at_the_end_of_each_epoch(data):
    ends, count = [], 0
    for epoch in range(6):
        count += -(-len(batch_by_length(data.train, 256, seed=3, epoch=epoch)) // 2)
        ends.append(count)
    epoch_lengths = {end - start for start, end in zip([0, *ends], ends, strict=False)}
    assert len(epoch_lengths) > 1  # or the test would show nothing
    loop, recorder = make_loop(data, steps=ends[-1], accumulation_steps=2, validate_every=0)
    loop.run()
    assert recorder.steps_of("validation") == ends


def test_logged_loss_is_the_nll_per_token(data):
    loop, recorder = make_loop(data, steps=1)
    rows = batch_by_length(data.train, 256, seed=3, epoch=0)[0]
    batch = collate(data.train, rows)
    with torch.no_grad():
        expected = float(loop.objective(batch).nll) / batch.target_tokens
    loop.run()
    (result,) = recorder.steps
    assert result.loss == pytest.approx(expected, rel=1e-5)
    assert result.tokens == batch.target_tokens


def test_validation_loss_weighs_tokens_equally_and_keeps_the_mode(data):
    objective = make_loop(data)[0].objective
    everything = collate(data.valid, np.arange(len(data.valid)))
    objective.eval()
    with torch.no_grad():
        expected = float(objective(everything).nll) / everything.target_tokens
    objective.train()
    for batch_tokens in (40, 4096):
        loss = validation_loss(objective, data.valid, batch_tokens, Distributed())
        assert loss == pytest.approx(expected, rel=1e-5)
    assert objective.training and math.isfinite(expected)
