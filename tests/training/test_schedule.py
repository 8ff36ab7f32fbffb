import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.config import TrainConfig
from regard.training.schedule import rate

SCHEDULES = ("inverse_sqrt", "cosine", "constant")
steps = st.integers(1, 3000)


def of(schedule, **more):
    return TrainConfig(
        schedule=schedule, **({"learning_rate": 0.5, "warmup": 40, "steps": 1000} | more)
    )


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_rate_climbs_evenly_to_its_peak(schedule):
    settings = of(schedule)
    assert rate(1, settings) == 0.5 / 40
    assert rate(20, settings) == 0.25
    assert rate(40, settings) == 0.5


@pytest.mark.parametrize("schedule", SCHEDULES)
@given(step=steps)
def test_no_rate_is_above_the_peak_or_below_nothing(schedule, step):
    assert 0 <= rate(step, of(schedule)) <= 0.5


@pytest.mark.parametrize("schedule", SCHEDULES)
@given(step=steps)
def test_after_the_peak_the_rate_never_climbs(schedule, step):
    after = max(step, 40)
    assert rate(after + 1, of(schedule)) <= rate(after, of(schedule))


def test_four_times_the_steps_halve_the_inverse_square_root():
    settings = of("inverse_sqrt")
    assert rate(160, settings) == pytest.approx(0.25)
    assert rate(640, settings) == pytest.approx(0.125)


def test_a_cosine_is_half_down_in_the_middle_and_nothing_at_the_end():
    settings = of("cosine", warmup=100, steps=900)
    assert rate(500, settings) == pytest.approx(0.25)
    assert rate(900, settings) == pytest.approx(0, abs=1e-12)
    assert rate(5000, settings) == pytest.approx(0, abs=1e-12)


def test_a_constant_stays():
    assert rate(10**9, of("constant")) == 0.5


def test_another_plan_moves_the_end_of_a_cosine_alone():
    assert rate(300, of("cosine"), steps=300) == pytest.approx(0, abs=1e-12)
    assert rate(300, of("cosine"), steps=600) > 0.2
    for schedule in ("inverse_sqrt", "constant"):
        assert rate(300, of(schedule), steps=300) == rate(300, of(schedule))


def test_no_plan_is_the_plan_of_the_settings():
    assert rate(300, of("cosine"), steps=0) == rate(300, of("cosine"))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("warmup", [0, 1])
def test_without_a_climb_the_first_step_has_the_peak(schedule, warmup):
    assert rate(1, of(schedule, warmup=warmup)) == 0.5


def test_a_plan_that_ends_before_the_peak_is_no_error():
    assert rate(40, of("cosine"), steps=30) == 0.5
    assert rate(41, of("cosine"), steps=30) == pytest.approx(0, abs=1e-12)
