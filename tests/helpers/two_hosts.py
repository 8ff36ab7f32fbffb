"""Two hosts on one machine: network namespaces with names of their own, joined by a link."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from helpers.training import ONE_THREAD

NAMES = ("host-a", "host-b")
ETC = Path("/etc/netns")
ADDRESSES = ("10.77.0.1", "10.77.0.2")

# set the name of the host, then become the command
_WITH_NAME = (
    "import os, socket, sys; socket.sethostname(sys.argv[1]); os.execv(sys.argv[2], sys.argv[2:])"
)


def reason_to_skip():
    """Return why this machine cannot simulate two hosts, or None if it can."""
    if sys.platform != "linux":
        return "network namespaces need Linux"
    if os.geteuid() != 0:
        return "network namespaces need root"
    for program in ("ip", "unshare"):
        if shutil.which(program) is None:
            return f"`{program}` is not installed (iproute2, util-linux)"
    name = f"regard-try-{os.getpid()}"
    tried = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if tried.returncode:
        return f"this machine does not allow network namespaces: {tried.stderr.strip()}"
    _ip("netns", "del", name)
    return None


def _ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


class TwoHosts:
    """A context in which commands can be started on host-a and host-b."""

    def __init__(self):
        self.namespaces = [f"regard-{os.getpid()}-{letter}" for letter in "ab"]
        # names of interfaces have at most 15 characters
        self.links = [f"rg{os.getpid() % 10**6}{letter}" for letter in "ab"]
        self.processes = []

    def __enter__(self):
        for namespace, name in zip(self.namespaces, NAMES, strict=True):
            _ip("netns", "add", namespace)
            # as Debian has it: a host's own name resolves to an address that others cannot reach
            hosts = f"127.0.0.1 localhost\n127.0.1.1 {name}\n"
            (ETC / namespace).mkdir(parents=True)  # `ip netns exec` mounts it over /etc
            (ETC / namespace / "hosts").write_text(hosts)
        _ip("link", "add", self.links[0], "type", "veth", "peer", "name", self.links[1])
        for namespace, link, address in zip(self.namespaces, self.links, ADDRESSES, strict=True):
            _ip("link", "set", link, "netns", namespace)
            _ip("-n", namespace, "addr", "add", f"{address}/24", "dev", link)
            _ip("-n", namespace, "link", "set", link, "up")
            _ip("-n", namespace, "link", "set", "lo", "up")
        return self

    def __exit__(self, *exception):
        for process in self.processes:
            process.kill()
            process.wait()
            process.stderr.close()
        for namespace in self.namespaces:
            for pid in subprocess.run(
                ["ip", "netns", "pids", namespace], capture_output=True, text=True
            ).stdout.split():
                subprocess.run(["kill", "-9", pid], capture_output=True)
            _ip("netns", "del", namespace)
            shutil.rmtree(ETC / namespace)

    def start(self, host, command, **variables):
        """Start a command on host 0 or 1; its stderr can be read from the result."""
        process = subprocess.Popen(
            [
                *("ip", "netns", "exec", self.namespaces[host], "unshare", "--uts"),
                *(sys.executable, "-c", _WITH_NAME, NAMES[host], *command),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**ONE_THREAD, **variables},
        )
        self.processes.append(process)
        return process

    def cut_link(self):
        """Take the link down, as a pulled cable does."""
        _ip("-n", self.namespaces[0], "link", "set", self.links[0], "down")

    def restore_link(self):
        _ip("-n", self.namespaces[0], "link", "set", self.links[0], "up")


def on_host(host, command, *options):
    """Return the command line that starts a process per host with torchrun."""
    torchrun = [
        *("-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"),
        *("--rdzv-backend", "c10d", "--rdzv-endpoint", f"{ADDRESSES[0]}:29400"),
        *("--rdzv-conf", f"is_host={int(host == 0)}", "--local-addr", ADDRESSES[host]),
        *("--rdzv-id", "test", *options),
    ]
    return [command[0], *torchrun, *command[1:]]
