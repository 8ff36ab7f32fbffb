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
    for name in ("init_process_group", "destroy_process_group", "new_group"):
        monkeypatch.setattr(f"torch.distributed.{name}", lambda *_, **__: None)
    monkeypatch.setattr("torch.distributed.get_rank", lambda: 0)


def test_lost_connection_becomes_one_line(first_of_two):
    message = "another process of this training run ended; run the same command to resume"
    with pytest.raises(RegardError, match=message), init_distributed():
        raise RuntimeError("[gloo/transport/tcp/pair.cc] Connection closed by peer [127.0.0.1]")


def test_other_errors_keep_their_traceback(first_of_two):
    with pytest.raises(RuntimeError, match="shapes"), init_distributed():
        raise RuntimeError("shapes do not fit")


def test_default_device_is_the_cpu():
    assert Distributed().device == torch.device("cpu")
