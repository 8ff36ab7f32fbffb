"""Data-parallel training: processes that torchrun started share every batch."""

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

# DistributedDataParallel's switch for synchronizing buffers, by version of torch
_NEW, _OLD = "forward_sync_buffers", "broadcast_buffers"
_SYNC_BUFFERS = _NEW if _NEW in signature(DistributedDataParallel.__init__).parameters else _OLD

TIMEOUT = timedelta(minutes=30)  # while a process writes or validates
SLOW_TIMEOUT = timedelta(days=2)  # while the main process encodes a very large corpus

CPU = torch.device("cpu")


@dataclass(frozen=True, slots=True)
class Distributed:
    """Process group of a training run, as one of its processes sees it.

    With one process, every operation returns its input.
    """

    rank: int = 0
    world_size: int = 1
    device: torch.device = CPU
    slow_group: distributed.ProcessGroup | None = None  # the same processes with SLOW_TIMEOUT

    @property
    def is_main(self) -> bool:
        """Whether this process writes files, prints and translates for all."""
        return self.rank == 0

    def wrap(self, model: nn.Module) -> nn.Module:
        """Wrap a module so that backward averages its gradients over the processes (all-reduce)."""
        if self.world_size == 1:
            return model
        devices = [self.device.index] if self.device.type == "cuda" else None
        # the buffers are position tables, which grow in each process with its longest sentence
        options: dict[str, Any] = {_SYNC_BUFFERS: False}
        return DistributedDataParallel(model, device_ids=devices, **options)

    def all_reduce(self, *values: float) -> list[float]:
        """Return the sum of each value over all processes."""
        if self.world_size == 1:
            return list(values)
        total = torch.tensor(values, dtype=torch.float64, device=self.device)
        distributed.all_reduce(total)
        return [float(value) for value in total]

    def broadcast(self, *values: float) -> list[float]:
        """Return the main process's values in every process."""
        if self.world_size == 1:
            return list(values)
        shared = torch.tensor(values, dtype=torch.float64, device=self.device)
        distributed.broadcast(shared, 0)
        return [float(value) for value in shared]

    def map_shards(self, function: Callable[[Tensor], Tensor], items: Tensor) -> Tensor:
        """Apply a function to a shard of the items in each process, and all-gather the results."""
        if self.world_size == 1:
            return function(items)
        shard_size = -(-len(items) // self.world_size)
        shard = torch.arange(self.rank * shard_size, (self.rank + 1) * shard_size) % len(items)
        own = function(items[shard.to(items.device)]).contiguous()
        results = own.new_empty(self.world_size * shard_size, *own.shape[1:])
        distributed.all_gather(list(results.chunk(self.world_size)), own)
        return results[: len(items)]

    def barrier(self, slow: bool = False) -> None:
        """Wait for all processes; `slow` allows for days instead of minutes."""
        if self.world_size > 1:
            distributed.barrier(self.slow_group if slow else None)


@contextmanager
def init_distributed() -> Iterator[Distributed]:
    """Initialise torch.distributed from torchrun's environment, or run as a single process."""
    # a cluster may set WORLD_SIZE without RANK for a job of one process
    world_size = int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1
    has_gpu = torch.cuda.is_available()
    if world_size == 1:
        yield Distributed(device=torch.device("cuda" if has_gpu else "cpu"))
        return
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device("cuda", local_rank) if has_gpu else CPU
    if has_gpu:
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if has_gpu else "gloo", timeout=TIMEOUT)
    slow_group = distributed.new_group(backend="gloo", timeout=SLOW_TIMEOUT)
    try:
        yield Distributed(distributed.get_rank(), world_size, device, slow_group)
    except RuntimeError as problem:
        if _is_lost_connection(problem):
            raise RegardError(
                "another process of this training run ended; "
                "run the same command to resume from the last checkpoint"
            ) from problem
        raise
    finally:
        distributed.destroy_process_group()


def _is_lost_connection(problem: RuntimeError) -> bool:
    signs = ("Connection closed by peer", "Connection reset", "NCCL", "Broken pipe", "gloo")
    return any(sign in str(problem) for sign in signs)
