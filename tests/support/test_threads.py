import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest
import torch

from regard._support.threads import cores, side_by_side
from regard.config import ModelConfig
from regard.data import PAD
from regard.decoding.search import LengthLimits, beam
from regard.models import build


@pytest.fixture(autouse=True)
def three_threads():
    """Let torch have threads to lose, whatever the machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_results_come_in_the_order_of_the_parts():
    assert list(side_by_side(lambda n: n * n, range(7), threads=3)) == [0, 1, 4, 9, 16, 25, 36]


def test_parts_are_worked_on_at_the_same_time():
    meeting = Barrier(2, timeout=20)  # passed only by two at a time
    assert sorted(side_by_side(lambda _: meeting.wait(), range(4), threads=2)) == [0, 0, 1, 1]


def test_each_thread_computes_alone_and_leaves_no_trace():
    assert list(side_by_side(lambda _: torch.get_num_threads(), range(5), threads=2)) == [1] * 5
    assert torch.get_num_threads() == 3
    with ThreadPoolExecutor(1) as later:
        assert later.submit(torch.get_num_threads).result() == 3


def test_whoever_begins_while_another_works_has_all_threads_and_leaves_no_trace():
    began, go_on = Event(), Event()

    def first():
        list(side_by_side(lambda _: began.set() or go_on.wait(20), range(3), threads=3))

    def second():
        seen = cores()
        list(side_by_side(lambda _: None, range(2)))
        return seen, torch.get_num_threads()

    with ThreadPoolExecutor(1) as one:
        working = one.submit(first)
        began.wait(20)
        with ThreadPoolExecutor(1) as two:
            assert two.submit(second).result() == (3, 3)
        go_on.set()
        working.result()
    with ThreadPoolExecutor(1) as later:
        assert later.submit(torch.get_num_threads).result() == 3


def test_an_error_in_one_part_is_raised_and_leaves_no_trace():
    with pytest.raises(ZeroDivisionError, match="division"):
        list(side_by_side(lambda n: 1 // n, [2, 1, 0], threads=2))
    with ThreadPoolExecutor(1) as later:
        assert later.submit(torch.get_num_threads).result() == 3


def test_results_come_before_all_parts_are_done():
    last = Event()
    results = side_by_side(lambda n: last.wait(20) if n == 2 else n, range(3), threads=1)
    assert [next(results), next(results)] == [0, 1]
    last.set()
    assert list(results) == [True]


def test_parts_that_nobody_waits_for_are_left():
    done = []

    def work(part):
        done.append(part)
        time.sleep(0.01)  # all of them would take ten seconds

    results = side_by_side(work, range(1000), threads=1)
    next(results)
    results.close()
    assert len(done) < 1000


def test_threads_must_be_one_or_more():
    with pytest.raises(ValueError, match="threads must be 1 or more, but it is 0"):
        next(side_by_side(str, [1], threads=0))


def test_sentences_translated_in_parts_are_those_translated_together():
    torch.manual_seed(0)
    model = build(ModelConfig(width=12, layers=2, heads=3, ffn_width=20), (17, 19)).eval()
    lengths = torch.tensor([2, 3, 5, 5, 6, 7, 7])
    source = torch.randint(4, 17, (7, 7))
    source[torch.arange(7) >= lengths[:, None]] = PAD

    def translate(rows):
        past = model.start(model.encode(source[rows], lengths[rows]))
        return beam(model, past, len(rows), beams=3, limits=LengthLimits(longest=9))

    together = translate(torch.arange(7))
    apart = side_by_side(translate, torch.arange(7).split(3), threads=2)
    apart = [texts for part in apart for texts in part]
    assert [texts[0].tokens for texts in apart] == [texts[0].tokens for texts in together]
    scores = [[texts[0].score for texts in found] for found in (apart, together)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-5)
