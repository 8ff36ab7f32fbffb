"""Processes find each other, and name what differs between them."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import timedelta

import pytest
from torch.distributed import HashStore

from regard.errors import RegardError, SharedError
from regard.training import rendezvous
from regard.training.rendezvous import Hello, handshake, join_rendezvous

SHORT = timedelta(seconds=0.2)


@pytest.fixture(autouse=True)
def quick_polls(monkeypatch):
    monkeypatch.setattr(rendezvous, "POLL_SECONDS", 0.005)


def hellos(world_size, start=0):
    return [
        Hello(f"start{start}-{rank}", f"host{rank}", f"10.0.0.{rank}", world_size, "gloo", "1", "2")
        for rank in range(world_size)
    ]


def meet(store, all_hellos, timeout=timedelta(seconds=20)):
    """Run the handshake of all processes, each in a thread; return their results or errors."""
    with ThreadPoolExecutor(len(all_hellos)) as pool:
        futures = [
            pool.submit(handshake, store, rank, hello, timeout)
            for rank, hello in enumerate(all_hellos)
        ]
        return [future.exception() or future.result() for future in futures]


def test_processes_share_a_store_and_the_list_of_hosts():
    results = meet(HashStore(), hellos(3))
    assert {one.hosts for one in results} == {("host0", "host1", "host2")}
    assert {one.addresses for one in results} == {("10.0.0.0", "10.0.0.1", "10.0.0.2")}
    results[0].store.set("key", "value")
    assert results[2].store.get("key") == b"value"


def test_restarted_processes_do_not_see_keys_of_the_earlier_start():
    """torch's own keys would name the addresses of processes that have ended."""
    store = HashStore()
    before = meet(store, hellos(3, start=1))
    before[1].store.set("address", "of a process that has ended")
    after = meet(store, hellos(3, start=2))
    assert not after[2].store.check(["address"])


def test_left_hello_of_another_size_is_not_confirmed():
    """The run before had three processes, one of which never reached a result."""
    store = HashStore()
    left = hellos(3, start=1)[1]
    rendezvous._write(store, "hello/1", asdict(left))
    with pytest.raises(RegardError, match=r"^no process of rank 1 has come; start the command"):
        handshake(store, 0, hellos(2, start=2)[0], SHORT)
    assert not any(isinstance(one, Exception) for one in meet(store, hellos(2, start=3)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"world_size": 3}, "number of processes"),
        ({"backend": "nccl"}, "backend"),
        ({"regard": "0.9"}, "version of regard"),
        ({"torch": "2.1"}, "version of torch"),
    ],
)
def test_difference_is_raised_in_all_processes(change, words):
    first, second = hellos(2)
    problems = meet(HashStore(), [first, replace(second, **change)])
    (value,) = change.values()
    for problem in problems:
        assert isinstance(problem, SharedError)
        assert str(problem).startswith(f"the {words} must be the same on all hosts, but it is")
        assert str(problem).endswith(f"on host0 (rank 0) and {value} on host1 (rank 1)")


def test_missing_ranks_are_named_once_while_waiting_and_at_the_end(monkeypatch):
    monkeypatch.setattr(rendezvous, "NOTE_SECONDS", 0.05)
    notes = []
    with pytest.raises(RegardError, match="^no process of ranks 1, 2 and 3 has come"):
        handshake(HashStore(), 0, hellos(4)[0], SHORT, notes.append)
    assert notes == ["waiting for ranks 1, 2 and 3 of 4 processes"]


def test_missing_main_process_is_reported():
    with pytest.raises(RegardError, match="^rank 0 has not come; start the command on every host"):
        handshake(HashStore(), 1, hellos(2)[1], SHORT)


@pytest.mark.parametrize(("rank", "key"), [(0, "round"), (1, "hello/1")])
def test_second_process_of_a_rank_is_reported(rank, key):
    store = HashStore()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(handshake, store, rank, hellos(2)[rank], timedelta(seconds=20))
        store.wait([key])
        store.set(key, json.dumps({"identifier": "of the second", "hellos": {}}))
        message = f"^another process also has rank {rank}; every host needs a --node-rank"
        with pytest.raises(RegardError, match=message):
            first.result()


def test_missing_variable_of_torchrun_is_named(monkeypatch):
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(RegardError, match="^RANK is set, but MASTER_ADDR is not; start several"):
        join_rendezvous(0, 2, "gloo")
