import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from regard.config import TrainConfig
from regard.training.checkpoint import Checkpoints
from regard.training.state import Progress

FIGURES = (5.0, 3.0, 4.0, 2.0, 2.5)


def judged(figures, **settings):
    """Judge the figures of validations, one every ten steps."""
    progress, train = Progress(), TrainConfig(**settings)
    better = []
    for figure in figures:
        progress.step += 10
        better.append(progress.judge(figure, train))
        if progress.finished:
            break
    return progress, better


def test_each_figure_below_all_before_is_the_best():
    progress, better = judged(FIGURES)
    assert better == [True, True, False, True, False]
    assert (progress.best, progress.best_step, progress.waited) == (2.0, 40, 1)
    assert not progress.finished


def test_the_same_figure_again_is_no_progress():
    assert judged([3.0, 3.0])[1] == [True, False]


def test_bleu_is_judged_by_its_negative():
    progress, better = judged([-10.0, -30.0, -20.0])
    assert better == [True, True, False]
    assert progress.best == -30.0


def test_patience_ends_when_it_has_waited_so_often():
    progress, better = judged([2.0, 3.0, 1.0, 4.0, 5.0, 6.0, 0.5], patience=3)
    assert len(better) == 6
    assert progress.finished == "no progress in 3 validations"


def test_without_patience_there_is_no_end():
    assert not judged([1.0] + [2.0] * 50, patience=0)[0].finished


numbers = st.floats(allow_nan=False)


@given(
    st.builds(
        Progress,
        step=st.integers(0),
        seconds=numbers,
        best=st.none() | numbers,
        judged=st.dictionaries(st.integers(0).map(str), numbers),
        finished=st.text(),
    )
)
def test_all_counters_come_back_from_json(progress):
    back = Progress.from_dict(json.loads(json.dumps(progress.to_dict())))
    assert back == progress
    assert list(back.judged) == list(progress.judged), "the last are told by the order"


def test_a_judgement_goes_on_from_where_it_was_saved():
    whole, _ = judged(FIGURES)
    part, _ = judged(FIGURES[:3])
    back = Progress.from_dict(json.loads(json.dumps(part.to_dict())))
    for figure in FIGURES[3:]:
        back.step += 10
        back.judge(figure, TrainConfig())
    assert back == whole


def test_a_time_box_plans_the_steps_it_has_room_for():
    progress = Progress(step=100, seconds=60.0, planned=9)
    progress.replan(TrainConfig(minutes=3.0))
    assert progress.planned == 300


def test_a_time_box_that_is_full_plans_no_more():
    progress = Progress(step=100, seconds=200.0, planned=900)
    progress.replan(TrainConfig(minutes=3.0))
    assert progress.planned == 100


def test_without_a_time_box_or_a_step_the_plan_stays():
    for progress, minutes in (
        (Progress(step=5, seconds=9.0, planned=7), None),
        (Progress(planned=7), 3.0),
    ):
        before = progress.planned
        progress.replan(TrainConfig(minutes=minutes))
        assert progress.planned == before


@pytest.mark.parametrize(
    ("average", "of", "steps"),
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
def test_the_last_or_the_best_are_averaged(average, of, steps):
    progress, _ = judged(FIGURES)
    assert progress.averaged(TrainConfig(average_checkpoints=average, average_which=of)) == steps


def test_before_a_validation_there_is_nothing_to_average():
    assert Progress(step=3).averaged(TrainConfig()) == []


def test_the_same_steps_are_averaged_after_a_restart(tmp_path):
    progress, _ = judged([3.0, 2.0] * 6)  # steps 10 to 120, and in a file 100 is before 20
    model = nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters())
    Checkpoints(tmp_path).save(model, optimizer, progress)
    again = Checkpoints(tmp_path).resume(model, optimizer, print)
    for of, steps in (("last", [100, 110, 120]), ("best", [80, 100, 120])):
        for one in (progress, again):
            assert one.averaged(TrainConfig(average_checkpoints=3, average_which=of)) == steps
