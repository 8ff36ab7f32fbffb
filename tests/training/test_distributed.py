import pytest
import torch
from torch import nn

from regard.errors import RegardError
from regard.training.distributed import Distributed, init_distributed


def test_single_process_operations_return_their_input(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with init_distributed() as group:
        assert (group.rank, group.world_size, group.is_main) == (0, 1, True)
        model = nn.Linear(2, 3)
        assert group.wrap(model) is model
        assert group.all_reduce(1.5, 2.0) == [1.5, 2.0]
        assert group.broadcast(4.0) == [4.0]
        group.barrier()


def test_world_size_without_rank_is_a_single_process(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("RANK", raising=False)
    with init_distributed() as group:
        assert group.world_size == 1


@pytest.mark.parametrize("world_size", [1, 2, 3, 5])
def test_map_shards_gathers_the_results_of_all_processes(world_size, monkeypatch):
    items, shards = torch.arange(8.0).reshape(4, 2), []
    monkeypatch.setattr("torch.distributed.all_gather", lambda _, own: shards.append(own))
    for rank in range(world_size):  # collect what each process contributes
        result = Distributed(rank, world_size).map_shards(torch.square, items)
    if world_size > 1:
        assert {len(own) for own in shards} == {-(-4 // world_size)}
        monkeypatch.setattr(
            "torch.distributed.all_gather",
            lambda outputs, _: [
                output.copy_(own) for output, own in zip(outputs, shards, strict=True)
            ],
        )
        result = Distributed(0, world_size).map_shards(torch.square, items)
    assert torch.equal(result, items**2)


@pytest.fixture
def first_of_two(monkeypatch):
    """Be the first of two processes, without a second one."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    connect = "regard.training.distributed.connect_processes"
    monkeypatch.setattr(connect, lambda *_: (None, ("a", "b")))
    monkeypatch.setattr("torch.distributed.destroy_process_group", lambda: None)


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("Connection closed by peer [10.0.0.2]:41", "another process of this training run ended"),
        (
            "Read error [10.0.0.2]:41: Connection timed out",
            r"another host of this training run \(10.0.0.2\) has not answered for 30 seconds",
        ),
        (
            "Timed out waiting 1800000ms for recv operation to complete",
            "another process of this training run has not answered for 30 minutes",
        ),
    ],
    ids=["ended", "unreachable", "stuck"],
)
def test_lost_connection_becomes_one_line(reason, message, first_of_two):
    message = f"^{message}; run the same command to resume from the last checkpoint$"
    with pytest.raises(RegardError, match=message), init_distributed():
        raise RuntimeError(f"[gloo/transport/tcp/pair.cc] {reason}")


def test_other_errors_keep_their_traceback(first_of_two):
    with pytest.raises(RuntimeError, match="shapes"), init_distributed():
        raise RuntimeError("shapes do not fit")


def test_default_device_is_the_cpu():
    assert Distributed().device == torch.device("cpu")
