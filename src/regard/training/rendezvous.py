"""Rendezvous: the processes of torchrun find each other, and check that they belong together.

torch's own rendezvous reads what is in the store. After an elastic restart (`--max-restarts`) the
store still holds the addresses of the processes before, and the new ones connect to those. Here
every start of the processes agrees on an identifier first, and uses keys of its own.

    rank r      hello/r             its host and settings, with a random identifier
    rank 0      round               a new identifier for this start, and all it has read in hello/r
    rank r      ready/ROUND/r       if its own hello is in the round
    rank 0      result/ROUND        once all are ready: the hosts and addresses, or a difference

A hello that a process of an earlier start has left is never confirmed, so that rank 0 waits until
the new process has replaced it, and announces another round.
"""

import json
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, NamedTuple

import torch
from torch._C._distributed_c10d import PrefixStore, Store, TCPStore
from torch.distributed import DistError

from regard import __version__
from regard._support.progress import echo_to_stderr, format_duration
from regard._support.text import count
from regard.errors import RegardError, SharedError
from regard.training.network import first_line, source_address

JOIN_TIMEOUT = timedelta(minutes=10)  # as torchrun waits: the command is typed on every host
AGENT_TIMEOUT = timedelta(minutes=1)  # where torchrun itself runs the store already
POLL_SECONDS = 0.05
NOTE_SECONDS = 10.0  # after which a line names the missing processes

COMPARED = {
    "world_size": "number of processes",
    "backend": "backend",
    "regard": "version of regard",
    "torch": "version of torch",
}


@dataclass(frozen=True, slots=True)
class Hello:
    """Host, address and versions of a process, which it announces to the others."""

    identifier: str
    host: str
    address: str  # its own, as it reaches the store
    world_size: int
    backend: str
    regard: str
    torch: str

    @classmethod
    def of_this_process(cls, world_size: int, backend: str, store_host: str) -> "Hello":
        """Return the hello of this process, with a new identifier."""
        return cls(
            secrets.token_hex(8),
            socket.gethostname(),
            source_address(store_host),
            world_size,
            backend,
            __version__,
            torch.__version__.partition("+")[0],
        )


class Rendezvous(NamedTuple):
    """Processes that have found each other."""

    store: Store  # with keys of this start only
    hosts: tuple[str, ...]  # of each rank
    addresses: tuple[str, ...]


def join_rendezvous(rank: int, world_size: int, backend: str) -> Rendezvous:
    """Wait for all processes that torchrun started, and compare them.

    Raises:
        RegardError: if the store cannot be reached, a process did not come, or they differ.
    """
    host, port = _variable("MASTER_ADDR"), _variable("MASTER_PORT")
    is_agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"  # torchrun has one
    with _explain_store_errors(f"{host}:{port}"):
        store = TCPStore(
            host,
            int(port),
            is_master=rank == 0 and not is_agent,
            timeout=AGENT_TIMEOUT if is_agent else JOIN_TIMEOUT,
            wait_for_workers=False,
            multi_tenant=True,
        )
        hello = Hello.of_this_process(world_size, backend, host)
        return handshake(PrefixStore("regard", store), rank, hello)


def handshake(
    store: Store,
    rank: int,
    hello: Hello,
    timeout: timedelta = JOIN_TIMEOUT,
    note: Callable[[str], None] = echo_to_stderr,
) -> Rendezvous:
    """Agree on a round with all other processes.

    Args:
        store: that all processes share; it may hold keys of earlier starts.
        rank: of this process.
        hello: of this process.
        timeout: how long to wait for the others.
        note: receives a line, in rank 0, that names the missing processes after a while.

    Raises:
        SharedError: if the processes differ; all of them raise it.
        RegardError: if a process did not come in time, or another one has the same rank.
    """
    wait = _Wait(timeout)
    if rank == 0:
        identifier, result = _lead(store, hello, wait, note)
    else:
        identifier, result = _follow(store, rank, hello, wait)
    if result["difference"]:
        raise SharedError(result["difference"])
    hosts, addresses = tuple(result["hosts"]), tuple(result["addresses"])
    return Rendezvous(PrefixStore(identifier, store), hosts, addresses)


def _lead(
    store: Store, hello: Hello, wait: "_Wait", note: Callable[[str], None]
) -> tuple[str, dict[str, Any]]:
    """Announce rounds until all processes are ready; return the last one and its result."""
    others = range(1, hello.world_size)
    identifier, announced, is_noted = "", None, False
    while True:
        hellos = {
            rank: Hello(**fields) for rank in others if (fields := _read(store, f"hello/{rank}"))
        }
        if hellos != announced:
            identifier, announced = secrets.token_hex(8), hellos
            identifiers = {rank: other.identifier for rank, other in hellos.items()}
            _write(store, "round", {"identifier": identifier, "hellos": identifiers})
        missing = [r for r in others if not store.check([f"ready/{identifier}/{r}"])]
        present = {0: hello, **{r: other for r, other in hellos.items() if r not in missing}}
        difference = _difference(present)
        if difference or not missing:
            result = {
                "difference": difference,
                "hosts": [one.host for one in present.values()],
                "addresses": [one.address for one in present.values()],
            }
            _write(store, f"result/{identifier}", result)
            return identifier, result
        if _read(store, "round")["identifier"] != identifier:
            raise _same_rank(0)
        text = f"rank {missing[0]}" if len(missing) == 1 else f"ranks {_list(missing)}"
        if wait.seconds > NOTE_SECONDS and not is_noted:
            note(f"waiting for {text} of {count(hello.world_size, 'process', 'processes')}")
            is_noted = True
        wait.poll(f"no process of {text} has come; start the command on every host")


def _follow(store: Store, rank: int, hello: Hello, wait: "_Wait") -> tuple[str, dict[str, Any]]:
    """Confirm the round that has this process's hello; return it and its result."""
    _write(store, f"hello/{rank}", asdict(hello))
    confirmed = ""
    while True:
        announced = _read(store, "round") or {"identifier": "", "hellos": {}}
        identifier = announced["identifier"]
        if announced["hellos"].get(str(rank)) == hello.identifier:
            if identifier != confirmed:
                store.set(f"ready/{identifier}/{rank}", "")
                confirmed = identifier
            if result := _read(store, f"result/{identifier}"):
                return identifier, result
        if _read(store, f"hello/{rank}")["identifier"] != hello.identifier:
            raise _same_rank(rank)
        wait.poll("rank 0 has not come; start the command on every host")


def _difference(hellos: dict[int, Hello]) -> str:
    """Return the first difference between processes, or an empty string."""
    first = hellos[0]
    for rank, other in hellos.items():
        for name, words in COMPARED.items():
            mine, theirs = getattr(first, name), getattr(other, name)
            if mine != theirs:
                return (
                    f"the {words} must be the same on all hosts, but it is {mine} on {first.host} "
                    f"(rank 0) and {theirs} on {other.host} (rank {rank})"
                )
    return ""


def _same_rank(rank: int) -> RegardError:
    return RegardError(
        f"another process also has rank {rank}; every host needs a --node-rank of its own"
    )


class _Wait:
    """A deadline, and the time since the beginning."""

    def __init__(self, timeout: timedelta) -> None:
        self._timeout, self._start = timeout.total_seconds(), time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start

    def poll(self, problem: str) -> None:
        """Sleep a little; raise RegardError after the deadline."""
        if self.seconds > self._timeout:
            raise RegardError(f"{problem} within {format_duration(self._timeout)}")
        time.sleep(POLL_SECONDS)


def _write(store: Store, key: str, value: Any) -> None:
    store.set(key, json.dumps(value))


def _read(store: Store, key: str) -> Any:
    """Return a value, or None if there is none."""
    return json.loads(store.get(key)) if store.check([key]) else None


def _list(ranks: list[int]) -> str:
    *first, last = map(str, ranks)
    return f"{', '.join(first)} and {last}"


def _variable(name: str) -> str:
    """Return an environment variable that torchrun sets."""
    if value := os.environ.get(name):
        return value
    raise RegardError(
        f"RANK is set, but {name} is not; start several processes with torchrun, or unset RANK and "
        "WORLD_SIZE"
    )


@contextmanager
def _explain_store_errors(address: str) -> Iterator[None]:
    """Turn torch's errors of the store into one line."""
    try:
        yield
    except DistError as error:
        if "EADDRINUSE" in str(error):
            raise RegardError(
                f"port {address.rpartition(':')[2]} of this host is in use by another program; "
                "choose another --master-port on all hosts"
            ) from error
        raise RegardError(
            f"cannot reach {address}, where the processes meet "
            f"({first_line(error)}); check the address and the firewall. torchrun's --local-addr "
            "sets the address by which other hosts reach a host"
        ) from error
