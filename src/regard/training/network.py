"""Network of a run on several hosts: its interface, lost connections, and how they are worded."""

import os
import re
import socket
import stat
import struct
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from socket import SOCK_DGRAM

from regard.errors import RegardError

if sys.platform == "linux":
    import fcntl

    SIOCGIFADDR = 0x8915  # the IPv4 address of an interface, of linux/sockios.h

# After which a host that does not answer is lost. torchrun gives up its own store after 60 s, and
# then ends the processes before they could report anything.
LINK_TIMEOUT = timedelta(seconds=30)
KEEPALIVE_IDLE_SECONDS, KEEPALIVE_INTERVAL_SECONDS = 10, 5

LOOPBACK = "127.0.0.1"
GLOO_INTERFACE = "GLOO_SOCKET_IFNAME"

_CLOSED = ("Connection closed by peer", "Connection reset", "Broken pipe")
_UNREACHABLE = ("Connection timed out", "No route to host", "Network is unreachable")
_RESUME = "run the same command to resume from the last checkpoint"


class LostProcessError(RegardError):
    """Another process of the run ended unexpectedly, or cannot be reached any more."""

    def __init__(self, reason: str = "", what: str = "another process of this training run ended"):
        super().__init__(f"{what}{reason}; {_RESUME}")


@contextmanager
def name_lost_connections(timeout: timedelta) -> Iterator[None]:
    """Turn errors of torch.distributed for lost connections into LostProcessError.

    Args:
        timeout: of the collective operations.
    """
    try:
        yield
    except RuntimeError as error:
        if lost := _lost_connection(str(error), timeout):
            raise lost from error
        raise


def _lost_connection(message: str, timeout: timedelta) -> LostProcessError | None:
    if any(sign in message for sign in _UNREACHABLE):
        peer = re.search(r"\[([\da-fA-F.:]+)\]:\d+", message)
        name = f" ({peer[1]})" if peer else ""
        seconds = f"{LINK_TIMEOUT.total_seconds():.0f} seconds"
        return LostProcessError(
            what=f"another host of this training run{name} has not answered for {seconds}"
        )
    if "Timed out waiting" in message:
        minutes = f"{timeout.total_seconds() / 60:.0f} minutes"
        return LostProcessError(
            what=f"another process of this training run has not answered for {minutes}"
        )
    if any(sign in message for sign in (*_CLOSED, "NCCL", "gloo")):
        return LostProcessError()
    return None


@contextmanager
def detect_lost_links() -> Iterator[None]:
    """Let the kernel close the connections made inside the context when their link is lost.

    gloo waits for as long as a collective operation may take: a host that is switched off or
    disconnected sends nothing that would end the wait. Keep-alive probes detect it; the kernel of
    the other host answers them, however busy its processes are.
    """
    before = _sockets()
    yield
    for handle in _sockets() - before:
        _set_keepalive(handle)


def _sockets() -> set[int]:
    """Return the file descriptors of this process that are sockets."""
    handles = set()
    folder = Path("/dev/fd")  # Windows has none
    for path in list(folder.iterdir()) if folder.exists() else ():
        with suppress(OSError):  # the one that listed the folder is closed by now
            if stat.S_ISSOCK(os.fstat(int(path.name)).st_mode):
                handles.add(int(path.name))
    return handles


def _set_keepalive(handle: int) -> None:
    connection = socket.socket(fileno=handle)
    try:
        if connection.family not in (socket.AF_INET, socket.AF_INET6):
            return
        timeout = int(LINK_TIMEOUT.total_seconds())
        probes = (timeout - KEEPALIVE_IDLE_SECONDS) // KEEPALIVE_INTERVAL_SECONDS
        options = {  # as far as the operating system has them
            "TCP_KEEPIDLE": KEEPALIVE_IDLE_SECONDS,
            "TCP_KEEPINTVL": KEEPALIVE_INTERVAL_SECONDS,
            "TCP_KEEPCNT": probes,
            "TCP_USER_TIMEOUT": 1000 * timeout,  # while data is on its way there are no probes
        }
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in options.items():
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    finally:
        connection.detach()  # gloo or the store still uses it


def source_address(host: str) -> str:
    """Return the address by which this host reaches another; an empty string if it does not."""
    with suppress(OSError):
        for family, kind, protocol, _, target in socket.getaddrinfo(host, 9, type=SOCK_DGRAM):
            with suppress(OSError), socket.socket(family, kind, protocol) as probe:
                probe.connect(target)  # sends nothing
                return str(probe.getsockname()[0])
    return ""


@contextmanager
def gloo_interface(own: str, addresses: Sequence[str]) -> Iterator[None]:
    """Let gloo connect through the interface by which the hosts reach each other.

    By default gloo takes the address that the host's name resolves to, which is often one of the
    loopback interface (127.0.1.1): other hosts cannot connect to it.

    Args:
        own: address of this process.
        addresses: those of all processes.

    Raises:
        RegardError: if GLOO_SOCKET_IFNAME names an interface that this host does not have.
    """
    interfaces = [name for _, name in socket.if_nameindex()]
    if requested := os.environ.get(GLOO_INTERFACE):
        for name in requested.split(","):
            if name not in interfaces:
                raise RegardError(
                    f"{GLOO_INTERFACE} must name a network interface of this host "
                    f"({', '.join(interfaces)}), but it is {name!r}"
                )
        yield
        return
    is_one_host = len(set(addresses)) == 1
    remote = [address for address in addresses if not _is_loopback(address)]
    if remote and _is_loopback(own):  # the name of this host, which runs the store, is local
        own = source_address(remote[0])
    interface = _interface_of(LOOPBACK if is_one_host else own, interfaces)
    if interface is None:  # gloo may find one
        yield
        return
    os.environ[GLOO_INTERFACE] = interface
    try:
        yield
    finally:
        del os.environ[GLOO_INTERFACE]


def _is_loopback(address: str) -> bool:
    return not address or ip_address(address).is_loopback


def _interface_of(address: str, interfaces: Sequence[str]) -> str | None:
    """Return the interface that has an IPv4 address, if it can be found."""
    if address == LOOPBACK:
        return next((name for name in interfaces if name in ("lo", "lo0")), None)
    if sys.platform != "linux":
        return None
    with socket.socket(socket.AF_INET, SOCK_DGRAM) as probe:
        for name in interfaces:
            request = struct.pack("256s", os.fsencode(name))
            with suppress(OSError):  # an interface without an IPv4 address
                answer = fcntl.ioctl(probe, SIOCGIFADDR, request)
                if socket.inet_ntoa(answer[20:24]) == address:
                    return name
    return None


def first_line(error: BaseException) -> str:
    """Return the first line of an error, without torch's log prefix and final period."""
    line = str(error).strip().partition("\n")[0]
    return re.sub(r"^\[[^]]*\]\s*", "", line).rstrip(". ")
