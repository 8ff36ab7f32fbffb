"""Worker pools: threads of this process, and stand-ins for those of others."""

import json
from threading import Event

import pytest
import torch

from regard._support.worker_pool import WorkerPool


class JsonRemote:
    """A thread of another process whose items and results pass through JSON."""

    def __init__(self, **functions):
        self.functions, self.calls, self.is_closed = functions, 0, Event()

    def call(self, function, item):
        self.calls += 1
        return json.loads(json.dumps(self.functions[function](json.loads(json.dumps(item)))))

    def close(self):
        self.is_closed.set()


def square(n):
    return n * n


@pytest.mark.parametrize(("threads", "remotes"), [(1, 0), (3, 0), (0, 2), (2, 2)])
def test_results_come_in_the_order_of_the_items(threads, remotes):
    remotes = [JsonRemote(square=square) for _ in range(remotes)]
    with WorkerPool(threads, remotes) as pool:
        assert list(pool.map(square, range(50))) == [n * n for n in range(50)]
        groups = [("a", [1, 2]), ("b", []), ("c", [3])]
        assert list(pool.map_groups(square, groups)) == [("a", [1, 4]), ("b", []), ("c", [9])]
    assert all(remote.is_closed.is_set() for remote in remotes)


def test_all_workers_take_items():
    local_took_one, remote_took_one = Event(), Event()

    def compute_remotely(_):
        remote_took_one.set()
        return local_took_one.wait(timeout=60)

    def square(_):
        local_took_one.set()
        return remote_took_one.wait(timeout=60)

    remote = JsonRemote(square=compute_remotely)
    with WorkerPool(1, [remote]) as pool:
        assert all(pool.map(square, range(9)))
    assert 0 < remote.calls < 9


def test_few_items_are_read_ahead():
    read = []

    def items():
        for n in range(1000):
            read.append(n)
            yield n

    with WorkerPool(2) as pool:
        results = pool.map(square, items())
        for _ in range(3):
            next(results)
        assert len(read) <= 3 + 2 * 2 + 2  # taken, in work or waiting, and being read
        results.close()


def test_result_is_yielded_while_the_next_item_is_waited_for():
    proceed = Event()

    def items():
        yield 3
        assert proceed.wait(20)
        yield 4

    with WorkerPool(1) as pool:
        results = pool.map(square, items())
        assert next(results) == 9
        proceed.set()
        assert list(results) == [16]


@pytest.mark.parametrize("is_remote", [False, True])
def test_error_is_raised_at_its_item(is_remote):
    def invert(n):
        return 1 / n

    remotes = [JsonRemote(invert=invert)] if is_remote else []
    with WorkerPool(0 if is_remote else 2, remotes) as pool:
        results = pool.map(invert, [2, 1, 0, 1])
        assert [next(results), next(results)] == [0.5, 1.0]
        with pytest.raises(ZeroDivisionError, match="division"):
            next(results)


def test_error_while_reading_is_raised_after_the_items_before_it():
    def items():
        yield 2
        raise ValueError("line 2 is no number")

    with WorkerPool(2) as pool:
        results = pool.map(square, items())
        assert next(results) == 4
        with pytest.raises(ValueError, match="line 2"):
            next(results)


def test_workers_are_single_threaded_and_torchs_threads_are_restored():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    with WorkerPool(2) as pool:
        assert list(pool.map(lambda _: torch.get_num_threads(), range(3))) == [1, 1, 1]
    assert torch.get_num_threads() == 3
    torch.set_num_threads(before)


def test_close_signals_functions_and_drops_items_that_were_not_started():
    started = []
    with WorkerPool(1) as pool:
        results = pool.map(lambda n: started.append(n) or pool.is_closing.wait(20), range(9))
        reader = iter(results)
        Event().wait(0.05)  # the first item is being computed, or waits
    assert len(started) <= 1
    reader.close()
