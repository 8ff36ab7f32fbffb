"""Several processes that train one model: torchrun starts them, each takes a part of each batch."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from inspect import signature
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from regard.errors import RegardError

# what the switch that keeps buffers to their process is called, by torch's version
_NEW, _OLD = "forward_sync_buffers", "broadcast_buffers"
_BUFFERS = _NEW if _NEW in signature(DistributedDataParallel.__init__).parameters else _OLD

PATIENCE = timedelta(minutes=30)  # for a process that is busy writing, or validating
LONG = timedelta(days=2)  # for one that encodes a very large corpus

CPU = torch.device("cpu")


@dataclass(frozen=True, slots=True)
class Distributed:
    """The processes of a training, seen from one of them."""

    rank: int = 0
    world: int = 1
    device: torch.device = CPU
    patient: distributed.ProcessGroup | None = None  # the same processes, which wait for longer

    @property
    def leads(self) -> bool:
        """Whether this process writes, prints and validates for all."""
        return self.rank == 0

    def wrap(self, model: nn.Module) -> nn.Module:
        """Let gradients be averaged over the processes."""
        if self.world == 1:
            return model
        devices = [self.device.index] if self.device.type == "cuda" else None
        # buffers are tables of positions, which grow in each process as its sentences need
        alone: dict[str, Any] = {_BUFFERS: False}
        return DistributedDataParallel(model, device_ids=devices, **alone)

    def sum(self, *numbers: float) -> list[float]:
        """Add up numbers of all processes."""
        if self.world == 1:
            return list(numbers)
        total = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        distributed.all_reduce(total)
        return [float(number) for number in total]

    def tell(self, numbers: list[float]) -> list[float]:
        """Tell everybody the numbers of the process that leads; None counts as NaN."""
        if self.world == 1:
            return numbers
        told: Tensor = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        distributed.broadcast(told, 0)
        return [float(number) for number in told]

    def share_out(self, work: Callable[[Tensor], Tensor], items: Tensor) -> Tensor:
        """Have each process work on some of the items; give the results of all to everybody."""
        if self.world == 1:
            return work(items)
        each = -(-len(items) // self.world)
        mine = torch.arange(self.rank * each, (self.rank + 1) * each) % len(items)
        done = work(items[mine.to(items.device)]).contiguous()
        results = done.new_empty(self.world * each, *done.shape[1:])
        distributed.all_gather(list(results.chunk(self.world)), done)
        return results[: len(items)]

    def wait(self, long: bool = False) -> None:
        """Go on when all are here, however long one of them may be at work."""
        if self.world > 1:
            distributed.barrier(self.patient if long else None)


@contextmanager
def gathered() -> Iterator[Distributed]:
    """Join the processes that torchrun started; alone, be a crew of one."""
    # a cluster may set the one without the other, where nobody is to be met
    world = int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1
    on_gpu = torch.cuda.is_available()
    if world == 1:
        yield Distributed(device=torch.device("cuda" if on_gpu else "cpu"))
        return
    local = int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device("cuda", local) if on_gpu else CPU
    if on_gpu:
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if on_gpu else "gloo", timeout=PATIENCE)
    patient = distributed.new_group(backend="gloo", timeout=LONG)
    try:
        yield Distributed(distributed.get_rank(), world, device, patient)
    except RuntimeError as problem:
        if _lost_someone(problem):
            raise RegardError(
                "another process of this training ended, so this one cannot go on; "
                "the same command goes on from the last state"
            ) from problem
        raise
    finally:
        distributed.destroy_process_group()


def _lost_someone(problem: RuntimeError) -> bool:
    signs = ("Connection closed by peer", "Connection reset", "NCCL", "Broken pipe", "gloo")
    return any(sign in str(problem) for sign in signs)
