"""Usable cores, and parallel map over torch work."""

import time
from concurrent.futures import ThreadPoolExecutor
from math import inf
from threading import Barrier, Event

import pytest
import torch

from regard._support import resources
from regard._support.resources import available_threads, parallel_map
from regard.config import ModelConfig
from regard.data import PAD
from regard.decoding import LengthLimits, beam_search
from regard.models import build


@pytest.fixture(autouse=True)
def three_threads():
    """Give torch several threads, whatever the machine has."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_results_come_in_the_order_of_the_items():
    assert list(parallel_map(lambda n: n * n, range(7), threads=3)) == [0, 1, 4, 9, 16, 25, 36]


def test_items_are_computed_concurrently():
    barrier = Barrier(2, timeout=20)  # passed only by two at a time
    assert sorted(parallel_map(lambda _: barrier.wait(), range(4), threads=2)) == [0, 0, 1, 1]


def test_workers_are_single_threaded_and_torchs_threads_are_restored():
    assert list(parallel_map(lambda _: torch.get_num_threads(), range(5), threads=2)) == [1] * 5
    assert torch.get_num_threads() == 3
    with ThreadPoolExecutor(1) as later:
        assert later.submit(torch.get_num_threads).result() == 3


def test_overlapping_pools_see_and_restore_the_original_threads():
    started, proceed = Event(), Event()

    def first():
        list(parallel_map(lambda _: started.set() or proceed.wait(20), range(3), threads=3))

    def second():
        available = available_threads()
        list(parallel_map(lambda _: None, range(2)))
        return available, torch.get_num_threads()

    with ThreadPoolExecutor(1) as one:
        running = one.submit(first)
        started.wait(20)
        with ThreadPoolExecutor(1) as two:
            assert two.submit(second).result() == (3, 3)
        proceed.set()
        running.result()
    with ThreadPoolExecutor(1) as later:
        assert later.submit(torch.get_num_threads).result() == 3


def test_error_in_an_item_is_raised_and_threads_are_restored():
    with pytest.raises(ZeroDivisionError, match="division"):
        list(parallel_map(lambda n: 1 // n, [2, 1, 0], threads=2))
    with ThreadPoolExecutor(1) as later:
        assert later.submit(torch.get_num_threads).result() == 3


def test_results_are_yielded_before_all_items_are_done():
    last = Event()
    results = parallel_map(lambda n: last.wait(20) if n == 2 else n, range(3), threads=1)
    assert [next(results), next(results)] == [0, 1]
    last.set()
    assert list(results) == [True]


def test_closing_the_iterator_drops_items_that_were_not_started():
    done = []

    def work(item):
        done.append(item)
        time.sleep(0.01)  # all of them would take ten seconds

    results = parallel_map(work, range(1000), threads=1)
    next(results)
    results.close()
    assert len(done) < 1000


def test_threads_below_1_are_refused():
    with pytest.raises(ValueError, match="threads must be 1 or more, but it is 0"):
        next(parallel_map(str, [1], threads=0))


def test_search_in_parallel_batches_equals_one_batch():
    torch.manual_seed(0)
    model = build(ModelConfig(width=12, layers=2, heads=3, ffn_width=20), (17, 19)).eval()
    lengths = torch.tensor([2, 3, 5, 5, 6, 7, 7])
    source = torch.randint(4, 17, (7, 7))
    source[torch.arange(7) >= lengths[:, None]] = PAD
    limits = LengthLimits(max_length=9)

    def search(rows):
        return beam_search(model, source[rows], lengths[rows], beam_size=3, limits=limits)

    together = [best for (best,) in search(torch.arange(7))]
    batches = parallel_map(search, torch.arange(7).split(3), threads=2)
    parallel = [best for batch in batches for (best,) in batch]
    assert [best.tokens for best in parallel] == [best.tokens for best in together]
    expected = pytest.approx([best.score for best in together], abs=1e-5)
    assert [best.score for best in parallel] == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "max 100000\n"}, inf),
        ({"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4.0),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, inf),
        ({}, inf),
    ],
    ids=["version 2", "version 2, none", "version 1", "version 1, none", "no control group"],
)
def test_cpu_quota_of_a_container(files, expected, tmp_path):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    assert resources.cpu_quota(tmp_path) == expected


def test_usable_cores_are_limited_by_affinity_and_quota(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 2, 5}, raising=False)
    for quota, expected in ((inf, 3), (2.5, 2), (0.5, 1)):
        monkeypatch.setattr(resources, "cpu_quota", lambda quota=quota: quota)
        assert resources.usable_cores() == expected
