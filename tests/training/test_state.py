import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from regard.config import TrainConfig
from regard.training import Checkpoints, TrainState
from regard.training.plan import TimePlan

METRICS = (5.0, 3.0, 4.0, 2.0, 2.5)


def validate(metrics, state=None, patience=10):
    """Record one validation every ten steps; return the state and which ones were the best."""
    state, was_best = state or TrainState(), []
    for metric in metrics:
        state.step += 10
        state.record_validation(metric, patience)
        was_best.append(state.is_best)
        if state.stop_reason:
            break
    return state, was_best


def test_lowest_metric_so_far_is_the_best():
    state, was_best = validate(METRICS)
    assert was_best == [True, True, False, True, False]
    assert (state.best_metric, state.best_step, state.bad_validations) == (2.0, 40, 1)
    assert not state.stop_reason


def test_equal_metric_is_no_improvement():
    assert validate([3.0, 3.0])[1] == [True, False]


def test_negated_bleu_is_best_when_bleu_is_highest():
    state, was_best = validate([-10.0, -30.0, -20.0])
    assert was_best == [True, True, False]
    assert state.best_metric == -30.0


def test_new_state_has_no_best_validation():
    assert not TrainState().is_best


def test_validation_resets_the_training_loss():
    state = TrainState(tokens_since_validation=7, loss_sum=3.5)
    state.record_validation(1.0, patience=0)
    assert (state.tokens_since_validation, state.loss_sum) == (0, 0.0)


def test_early_stopping_after_patience_validations_without_improvement():
    state, was_best = validate([2.0, 3.0, 1.0, 4.0, 5.0, 6.0, 0.5], patience=3)
    assert len(was_best) == 6
    assert state.stop_reason == "early stopping: no improvement in 3 validations"


def test_zero_patience_disables_early_stopping():
    assert not validate([1.0] + [2.0] * 50, patience=0)[0].stop_reason


numbers = st.floats(allow_nan=False)


@given(
    st.builds(
        TrainState,
        step=st.integers(0),
        seconds=numbers,
        plan=st.none() | st.builds(TimePlan, st.integers(0), anchor_phase=numbers),
        best_metric=st.none() | numbers,
        validation_history=st.dictionaries(st.integers(0).map(str), numbers),
        stop_reason=st.text(),
    )
)
def test_state_round_trips_through_json(state):
    back = TrainState.from_dict(json.loads(json.dumps(state.to_dict())))
    assert back == state
    assert list(back.validation_history) == list(state.validation_history)


def test_early_stopping_continues_after_json():
    uninterrupted, _ = validate(METRICS)
    first, _ = validate(METRICS[:3])
    resumed = TrainState.from_dict(json.loads(json.dumps(first.to_dict())))
    assert validate(METRICS[3:], resumed)[0] == uninterrupted


def limited(seconds, step=100, **plan):
    plan = TimePlan(10, step_seconds=0.5, **plan)
    return TrainState(step=step, seconds=seconds, max_steps=900, plan=plan)


def test_time_limit_sets_steps_by_the_measured_durations():
    """Of 200 seconds left of 300: 6 for the card, 3 × 10 to end, and 1 as a margin."""
    state = limited(100.0, validation_seconds=10.0)
    state.replan(TrainConfig(minutes=5.0))
    assert state.max_steps == 100 + 163 * 2
    state.validation_history = {"25": 3.0, "50": 2.0}  # one in 25 steps, 0.4 s a step
    state.replan(TrainConfig(minutes=5.0))
    assert state.max_steps == 100 + int(163 / 0.9)


def test_exceeded_time_limit_ends_at_the_current_step():
    state = limited(400.0)
    state.replan(TrainConfig(minutes=5.0))
    assert state.max_steps == 100
    state = limited(400.0)
    state.end_if_time_is_up(TrainConfig(minutes=5.0))
    assert state.max_steps == 100


def test_there_is_always_a_first_step():
    state = limited(400.0, step=0)
    state.replan(TrainConfig(minutes=5.0))
    assert state.max_steps == 1


def test_without_time_limit_nothing_is_planned():
    state = TrainState(step=5, seconds=9.0, max_steps=7)
    state.replan(TrainConfig())
    state.end_if_time_is_up(TrainConfig())
    assert state == TrainState(step=5, seconds=9.0, max_steps=7)


def test_early_stopping_under_a_time_limit_waits_a_tenth_of_the_plan():
    state = TrainState(max_steps=1000, plan=TimePlan(10))
    validate([1.0] + [2.0] * 9, state, patience=3)
    assert not state.stop_reason
    validate([2.0], state, patience=3)
    assert state.stop_reason == "early stopping: no improvement in 10 validations"


@pytest.mark.parametrize(
    ("count", "which", "steps"),
    [
        (2, "last", [40, 50]),
        (2, "best", [40, 50]),
        (3, "best", [20, 40, 50]),
        (3, "last", [30, 40, 50]),
        (1, "best", [40]),
        (0, "best", [40]),
        (0, "last", [50]),
        (9, "last", [10, 20, 30, 40, 50]),
    ],
)
def test_checkpoint_averaging_takes_the_last_or_the_best(count, which, steps):
    state, _ = validate(METRICS)
    config = TrainConfig(average_checkpoints=count, average_which=which)
    assert state.averaged_steps(config) == steps


def test_nothing_is_averaged_before_a_validation():
    assert TrainState(step=3).averaged_steps(TrainConfig()) == []


def test_same_checkpoints_are_averaged_after_resuming(tmp_path):
    state, _ = validate([3.0, 2.0] * 6)  # steps 10 to 120; as strings, 100 sorts before 20
    model = nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters())
    Checkpoints(tmp_path).save(model, optimizer, state)
    resumed = Checkpoints(tmp_path).resume(model, optimizer, print)
    for which, steps in (("last", [100, 110, 120]), ("best", [80, 100, 120])):
        config = TrainConfig(average_checkpoints=3, average_which=which)
        assert state.averaged_steps(config) == resumed.averaged_steps(config) == steps
