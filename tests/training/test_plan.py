"""A time limit: its plan, and runs by a clock that steps and validations advance."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.training_loop import make_loop
from regard.config import TrainConfig
from regard.training import TrainState, ValidationResult
from regard.training.optim import learning_rate
from regard.training.plan import MIN_USEFUL_STEPS, SELECTION_VALIDATIONS, TimePlan

pytestmark = pytest.mark.usefixtures("unchecked")

CONFIG = TrainConfig(learning_rate=1.0, warmup=50, schedule="cosine", minutes=3.0)


def rate(step, max_steps, plan):
    return learning_rate(step, CONFIG, max_steps, plan)


def test_schedule_of_a_fresh_plan_is_that_of_as_many_steps():
    plan = TimePlan()
    plan.revise_schedule(0, 0, 1000, warmup=50)
    fixed = TrainConfig(learning_rate=1.0, warmup=50, schedule="cosine", steps=1000)
    for step in (1, 49, 50, 51, 500, 999, 1000):
        assert rate(step, 1000, plan) == learning_rate(step, fixed)


@pytest.mark.parametrize(("planned", "warmup"), [(10_000, 50), (500, 50), (200, 20), (1, 1)])
def test_warmup_is_at_most_a_tenth_of_the_plan(planned, warmup):
    plan = TimePlan()
    plan.revise_schedule(0, 0, planned, warmup=50)
    assert plan.warmup == warmup


revisions = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 500)), min_size=1, max_size=20)


@given(revisions)
def test_revisions_keep_the_schedule_continuous_and_end_it_at_the_planned_step(revisions):
    plan, max_steps, step = TimePlan(), 300, 0
    plan.revise_schedule(0, 0, max_steps, warmup=50)
    for steps, left in revisions:
        step = min(step + steps, max_steps)
        before = plan.phase(step, max_steps)
        plan.revise_schedule(step, max_steps, step + left, warmup=50)
        max_steps = step + left
        assert plan.phase(step, max_steps) == pytest.approx(before)
        phases = [plan.phase(n, max_steps) for n in range(step, max_steps + 1)]
        assert phases == sorted(phases)
        is_warm = plan.warmup < max_steps or before >= 1
        assert phases[-1] == pytest.approx(2.0) or not is_warm


def test_late_revision_changes_the_slope_and_not_the_value():
    plan = TimePlan()
    plan.revise_schedule(0, 0, 1000, warmup=50)
    before = rate(600, 1000, plan)
    plan.revise_schedule(600, 1000, 700, warmup=50)
    assert rate(600, 700, plan) == pytest.approx(before)
    assert rate(700, 700, plan) == pytest.approx(0.0)
    assert abs(rate(601, 700, plan) - before) < 0.02


def test_speed_is_the_mean_of_the_first_steps_and_follows_a_change():
    plan = TimePlan(step_seconds=99.0)  # an estimate, which measurements replace
    for step in range(1, 12):
        plan.record_step(step, 50.0 if step == 1 else 1.0 + 2 * (step % 2))
    assert plan.step_seconds == pytest.approx(2.0)
    for step in range(12, 1000):
        plan.record_step(step, 5.0)
    assert plan.step_seconds == pytest.approx(5.0, rel=0.01)


def test_warning_names_the_planned_and_the_needed_steps_once():
    plan = TimePlan()
    assert plan.warning(MIN_USEFUL_STEPS, 3.0) is None
    warning = plan.warning(250, 3.0)
    assert "about 250 steps fit into 3 minutes" in warning
    assert "needs about 1,000" in warning and "14 minutes would do" in warning
    assert plan.warning(250, 3.0) is None


class Clock:
    """A clock that the test advances."""

    def __init__(self):
        self.now = 1e6

    def __call__(self):
        return self.now


def limited_loop(data, minutes, step_seconds, validation_seconds=2.0, state=None, **options):
    """Return a loop whose steps, by number, and validations take seconds of a clock."""
    clock = Clock()

    def validate():
        clock.now += validation_seconds
        return ValidationResult(1.0 / loop.state.step)

    config = {"minutes": minutes, "schedule": "cosine", "warmup": 20, "validate_every": 15}
    if state is None:
        plan = TimePlan(step_seconds=step_seconds(1), validation_seconds=1.0)
        state = TrainState(plan=plan)
        state.replan(data.config.update({"train": config}).train)
    loop, recorder = make_loop(
        data, validate=validate, state=state, clock=clock, **config, **options
    )
    take_step = loop.optimizer.step

    def slow_step(closure=None):
        clock.now += step_seconds(loop.state.step + 1)
        take_step()

    loop.optimizer.step = slow_step
    return loop, recorder


SPEEDS = {
    "steady": lambda step: 3.0,
    "half as fast after 20 steps": lambda step: 3.0 if step <= 20 else 6.0,
    "three times faster after 40 steps": lambda step: 3.0 if step <= 40 else 1.0,
    "estimate ten times too low": lambda step: 0.3 if step == 1 else 3.0,
    "estimate ten times too high": lambda step: 30.0 if step == 1 else 3.0,
    "uneven": lambda step: 1.5 + 3 * (step % 3),
}


@pytest.mark.train
@pytest.mark.parametrize("speed", SPEEDS.values(), ids=SPEEDS)
def test_time_limit_is_used_and_never_exceeded(make_data, speed):
    """Two validations must still fit when the loop ends: the selection of parameters."""
    loop, recorder = limited_loop(make_data(), 4.0, speed)
    state = loop.run()
    assert state.seconds + SELECTION_VALIDATIONS * 2.0 <= 240
    assert state.seconds > 0.88 * 240
    assert state.stop_reason == "the time limit of 4 minutes was reached"
    rates = [result.learning_rate for result in recorder.steps]
    peak = max(rates)
    assert rates[-1] < 0.1 * peak  # it decayed to the planned end
    late = rates[10:]  # when the speed is known
    assert max(abs(a - b) for a, b in pairwise(late)) < 0.1 * peak


def test_limit_below_a_step_takes_one_step(make_data):
    state = limited_loop(make_data(), 0.001, lambda step: 1.0)[0].run()
    assert (state.step, len(state.validation_history)) == (1, 1)


@pytest.mark.train
def test_interrupted_run_with_a_time_limit_resumes_to_the_same_schedule(make_data):
    data = make_data()
    speed = SPEEDS["uneven"]
    whole, recorder = limited_loop(data, 4.0, speed)
    whole.run()
    polls = iter([False] * 20 + [True])
    first, first_recorder = limited_loop(data, 4.0, speed, should_stop=lambda: next(polls))
    content = json.loads(json.dumps(first.run().to_dict()))
    assert content["step"] == 21 and content["plan"]["anchor_step"] == 20
    second, second_recorder = limited_loop(data, 4.0, speed, state=TrainState.from_dict(content))
    second.run()
    rates = [result.learning_rate for result in recorder.steps]
    resumed = [result.learning_rate for result in first_recorder.steps + second_recorder.steps]
    assert resumed == rates
    assert second.state == whole.state
