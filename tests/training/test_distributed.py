import pytest
import torch
from torch import nn

from regard.errors import RegardError
from regard.training.distributed import Distributed, gathered


def test_alone_there_is_a_crew_of_one(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with gathered() as crew:
        assert (crew.rank, crew.world, crew.leads) == (0, 1, True)
        model = nn.Linear(2, 3)
        assert crew.wrap(model) is model
        assert crew.sum(1.5, 2.0) == [1.5, 2.0]
        assert crew.tell([4.0]) == [4.0]


def test_a_number_of_processes_without_a_rank_is_nobody_to_meet(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("RANK", raising=False)
    with gathered() as crew:
        assert crew.world == 1


@pytest.mark.parametrize("world", [1, 2, 3, 5])
def test_work_is_shared_out_and_everybody_gets_all_of_it(world, monkeypatch):
    items, parts = torch.arange(8.0).reshape(4, 2), []
    monkeypatch.setattr("torch.distributed.all_gather", lambda _, part: parts.append(part))
    for rank in range(world):  # what each hands in
        whole = Distributed(rank, world).share_out(torch.square, items)
    if world > 1:
        assert {len(part) for part in parts} == {-(-4 // world)}
        monkeypatch.setattr(
            "torch.distributed.all_gather",
            lambda places, _: [
                place.copy_(part) for place, part in zip(places, parts, strict=True)
            ],
        )
        whole = Distributed(0, world).share_out(torch.square, items)
    assert torch.equal(whole, items**2)


@pytest.fixture
def two(monkeypatch):
    """Pretend to be the first of two, without a second."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    names = ("init_process_group", "destroy_process_group", "new_group")
    for name in names:
        monkeypatch.setattr(f"torch.distributed.{name}", lambda *_, **__: None)
    monkeypatch.setattr("torch.distributed.get_rank", lambda: 0)


def test_the_loss_of_another_process_is_one_sentence(two):
    with pytest.raises(RegardError, match="another process of this training ended"), gathered():
        raise RuntimeError("[gloo/transport/tcp/pair.cc] Connection closed by peer [127.0.0.1]")


def test_other_errors_keep_their_traceback(two):
    with pytest.raises(RuntimeError, match="shapes"), gathered():
        raise RuntimeError("shapes do not fit")


def test_a_crew_computes_where_it_is_told():
    assert Distributed().device == torch.device("cpu")
