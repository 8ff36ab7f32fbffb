"""Data-parallel training: processes share every batch.

They were started by torchrun (`init_distributed`), or by `train` itself (`join_processes`).
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch._C._distributed_c10d import FileStore
from torch.nn.parallel import DistributedDataParallel

from regard.errors import RegardError, SharedError
from regard.training.network import (
    GLOO_INTERFACE,
    LOOPBACK,
    detect_lost_links,
    first_line,
    gloo_interface,
    name_lost_connections,
)
from regard.training.rendezvous import join_rendezvous

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
    hosts: tuple[str, ...] = ()  # of each rank, if torchrun started them

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
        options: dict[str, Any] = {_SYNC_BUFFERS: False, "gradient_as_bucket_view": True}
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

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all processes, by rank; what JSON can represent."""
        if self.world_size == 1:
            return [value]
        device = CPU if self.slow_group else self.device
        text = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)
        sizes = torch.zeros(self.world_size, dtype=torch.long, device=device)
        sizes[self.rank] = len(text)
        distributed.all_reduce(sizes, group=self.slow_group)
        padded = torch.zeros(int(sizes.max()), dtype=torch.uint8, device=device)
        padded[: len(text)] = text
        texts = [torch.empty_like(padded) for _ in range(self.world_size)]
        distributed.all_gather(texts, padded, group=self.slow_group)
        return [
            json.loads(bytes(text[:size].tolist()))
            for text, size in zip(texts, sizes.tolist(), strict=True)
        ]

    @contextmanager
    def raise_together(self) -> Iterator[None]:
        """Wait for all processes at the end; if one has raised a RegardError, raise it in all.

        Raises:
            SharedError: with the message of the first process that failed, and its host.
        """
        problem: RegardError | None = None
        try:
            yield
        except RegardError as error:
            problem = error
        if self.world_size == 1 and problem is not None:
            raise problem
        messages = self.gather(None if problem is None else str(problem))
        for rank, message in enumerate(messages):
            if message is not None:
                where = f"{self.hosts[rank]}: " if len(set(self.hosts)) > 1 else ""
                raise SharedError(f"{where}{message}") from problem

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


def launched_processes() -> int | None:
    """Return how many processes torchrun started; None if this one was started otherwise."""
    # a cluster may set WORLD_SIZE without RANK for a job of one process
    return int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else None


@contextmanager
def init_distributed() -> Iterator[Distributed]:
    """Initialise torch.distributed from torchrun's environment, or run as a single process."""
    world_size = launched_processes() or 1
    if world_size == 1:
        yield Distributed(device=torch.device("cuda" if torch.cuda.is_available() else "cpu"))
        return
    rank, device = int(os.environ["RANK"]), _set_device(int(os.environ.get("LOCAL_RANK", "0")))
    with name_lost_connections(TIMEOUT):
        slow_group, hosts = connect_processes(_backend(), TIMEOUT, SLOW_TIMEOUT)
        try:
            yield Distributed(rank, world_size, device, slow_group, hosts)
        finally:
            distributed.destroy_process_group()


def connect_processes(
    backend: str, timeout: timedelta, slow_timeout: timedelta
) -> tuple[distributed.ProcessGroup, tuple[str, ...]]:
    """Connect the processes that torchrun started, through connections that notice lost links.

    Args:
        backend: of the default group.
        timeout: of the default group.
        slow_timeout: of another group of the same processes, on gloo.

    Returns:
        The other group, and the host of each rank.

    Raises:
        RegardError: if the processes cannot reach each other, or do not belong together.
    """
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    with detect_lost_links():
        rendezvous = join_rendezvous(rank, world_size, backend)
        try:
            with gloo_interface(rendezvous.addresses[rank], rendezvous.addresses):
                distributed.init_process_group(
                    backend,
                    store=rendezvous.store,
                    rank=rank,
                    world_size=world_size,
                    timeout=timeout,
                )
                group = distributed.new_group(backend="gloo", timeout=slow_timeout)
        except RuntimeError as error:
            raise RegardError(
                f"the processes cannot connect to each other ({first_line(error)}); a firewall "
                f"must let the hosts connect on all ports, and {GLOO_INTERFACE} names the interface"
            ) from error
    assert isinstance(group, distributed.ProcessGroup)
    return group, rendezvous.hosts


@contextmanager
def join_processes(rank: int, world_size: int, rendezvous: Path) -> Iterator[Distributed]:
    """Initialise torch.distributed with processes of the same host; alone, do nothing.

    A process that ends closes its connections, which the others notice at once. The timeout is
    therefore long: a callback may stop in a debugger.

    Args:
        rank: of this process.
        world_size: number of processes.
        rendezvous: file that does not exist yet, through which they find each other.

    Raises:
        LostProcessError: inside the context, if another process ended.
    """
    if world_size == 1:
        yield Distributed(device=torch.device("cuda" if torch.cuda.is_available() else "cpu"))
        return
    device = _set_device(rank)
    with name_lost_connections(SLOW_TIMEOUT):
        store = FileStore(str(rendezvous), world_size)
        with gloo_interface(LOOPBACK, [LOOPBACK]):
            distributed.init_process_group(
                _backend(), store=store, rank=rank, world_size=world_size, timeout=SLOW_TIMEOUT
            )
        try:
            yield Distributed(rank, world_size, device)
        finally:
            distributed.destroy_process_group()


def _backend() -> str:
    return "nccl" if torch.cuda.is_available() else "gloo"


def _set_device(local_rank: int) -> torch.device:
    """Return the device of a process of this host."""
    if not torch.cuda.is_available():
        return CPU
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    return device
