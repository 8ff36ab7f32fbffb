"""Training on two hosts, which are network namespaces of this machine, and elastic restarts."""

import os
import signal
import subprocess
import time
from pathlib import Path
from threading import Timer

import pytest

from helpers.tiny_corpus import write_tsv
from helpers.training import (
    ONE_THREAD,
    are_equal,
    assert_close,
    checkpoints_of,
    command,
    load_parameters,
    run_to_end,
    two_processes,
)
from helpers.two_hosts import ADDRESSES, TwoHosts, on_host, reason_to_skip

pytestmark = pytest.mark.usefixtures("unchecked")

NO_DROPOUT = "model.dropout=0.0"
LONG = ("train.steps=200", "train.validate_every=10", "train.patience=0")
WAIT_SECONDS = 300


@pytest.fixture
def hosts():
    if reason := reason_to_skip():
        pytest.skip(reason)
    with TwoHosts() as two:
        yield two


def own_lines(stderr):
    """Return what regard itself reports as an error; torchrun adds a report of its own."""
    return [line for line in stderr.splitlines() if line.startswith("regard: ")]


def finish(*processes):
    """Wait for the end of all processes; return the lines of regard on each host."""
    ended = [process.communicate(timeout=WAIT_SECONDS) for process in processes]
    return [own_lines(stderr) for _, stderr in ended]


def next_own_line(process):
    """Return the next line of regard itself; torchrun takes minutes to end without its store."""
    watchdog = Timer(WAIT_SECONDS, process.kill)
    watchdog.start()
    line = next((line for line in process.stderr if line.startswith("regard: ")), "")
    watchdog.cancel()
    process.kill()
    return line.rstrip("\n")


def wait_for_step(out, step, *processes):
    deadline = time.monotonic() + WAIT_SECONDS
    while max(checkpoints_of(out).state_steps(), default=0) < step:
        assert time.monotonic() < deadline
        assert all(process.poll() is None for process in processes)
        time.sleep(0.05)


def workers_of(process):
    """Return the processes that torchrun started."""
    pid = process.pid
    return [int(pid) for pid in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.train
def test_restarted_processes_end_with_the_parameters_of_an_undisturbed_run(tmp_path):
    """torchrun restarts all processes when one of them is killed, whichever it is."""
    tsv, whole, out = write_tsv(tmp_path / "pairs.tsv"), tmp_path / "whole", tmp_path / "run"
    run_to_end(two_processes(command(tsv, whole, *LONG)))
    elastic = two_processes(command(tsv, out, *LONG))
    elastic.insert(elastic.index("--standalone"), "--max-restarts=2")
    process = subprocess.Popen(elastic, stderr=subprocess.PIPE, text=True, env=ONE_THREAD)
    for rank, step in ((1, 20), (0, 60)):
        wait_for_step(out, step, process)
        os.kill(workers_of(process)[rank], signal.SIGKILL)
    _, stderr = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 0, stderr
    assert stderr.count("resuming from step") == 2
    assert are_equal(load_parameters(whole), load_parameters(out))


@pytest.mark.slow
def test_two_hosts_train_to_the_parameters_of_two_processes_on_one(hosts, tmp_path):
    tsv, one, out = write_tsv(tmp_path / "pairs.tsv"), tmp_path / "one", tmp_path / "run"
    run_to_end(two_processes(command(tsv, one, NO_DROPOUT)))
    both = [hosts.start(host, on_host(host, command(tsv, out, NO_DROPOUT))) for host in (0, 1)]
    assert finish(*both) == [[], []]
    assert_close(load_parameters(one), load_parameters(out))


@pytest.mark.slow
def test_cut_link_is_one_line_on_both_hosts_and_the_run_resumes(hosts, tmp_path):
    tsv, out = write_tsv(tmp_path / "pairs.tsv"), tmp_path / "run"
    endless = command(tsv, out, NO_DROPOUT, "train.steps=1000000", "train.patience=0")
    both = [hosts.start(host, on_host(host, endless)) for host in (0, 1)]
    wait_for_step(out, 8, *both)
    hosts.cut_link()
    for host, peer in ((0, ADDRESSES[1]), (1, ADDRESSES[0])):
        assert next_own_line(both[host]) == (
            f"regard: another host of this training run ({peer}) has not answered for 30 seconds; "
            "run the same command to resume from the last checkpoint"
        )
    hosts.restore_link()
    step = checkpoints_of(out).state_steps()[-1]
    again = [hosts.start(host, on_host(host, endless)) for host in (0, 1)]
    wait_for_step(out, step + 4, *again)


@pytest.mark.slow
def test_restart_over_two_hosts_ends_with_the_parameters_of_one(hosts, tmp_path):
    """The rendezvous takes place again on both hosts when a process of either is killed."""
    tsv, one, out = write_tsv(tmp_path / "pairs.tsv"), tmp_path / "one", tmp_path / "run"
    run_to_end(two_processes(command(tsv, one, NO_DROPOUT, *LONG)))
    line = command(tsv, out, NO_DROPOUT, *LONG)
    both = [hosts.start(host, on_host(host, line, "--max-restarts", "3")) for host in (0, 1)]
    for host, step in ((1, 20), (0, 60)):
        wait_for_step(out, step, *both)
        os.kill(workers_of(both[host])[0], signal.SIGKILL)
    ended = [process.communicate(timeout=WAIT_SECONDS)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], ended
    assert sum(stderr.count("resuming from step") for stderr in ended) == 2
    assert_close(load_parameters(one), load_parameters(out))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["folder", "corpus", "setting", "missing corpus", "interface"])
def test_difference_between_hosts_is_one_line_on_both(kind, hosts, tmp_path):
    tsv, other = write_tsv(tmp_path / "pairs.tsv"), tmp_path / "other.tsv"
    if kind != "missing corpus":
        other.write_text("".join(tsv.read_text().splitlines(keepends=True)[:-1]))
    out, second = tmp_path / "run", command(tsv, tmp_path / "run")
    expected = {
        "folder": f"regard: all hosts must share the run folder {out} of host-a (rank 0), but "
        f"{tmp_path / 'own'} does not exist on host-b (rank 1); --out must be on",
        "corpus": "regard: the training pairs must be the same on all hosts, but there are 225 "
        "pairs on host-a (rank 0) and 224 pairs on host-b (rank 1)",
        "setting": "regard: train.seed must be the same on all hosts, but it is 3 on host-a "
        "(rank 0) and 5 on host-b (rank 1); run the same command",
        "missing corpus": f"regard: host-b: cannot read {other}",
        "interface": "regard: GLOO_SOCKET_IFNAME must name a network interface of this host",
    }[kind]
    if kind == "folder":
        second = command(tsv, tmp_path / "own")
    elif kind in ("corpus", "missing corpus"):
        second = command(other, out)
    elif kind == "setting":
        second = command(tsv, out, "train.seed=5")
    variables = {"GLOO_SOCKET_IFNAME": "eth99"} if kind == "interface" else {}
    both = [
        hosts.start(host, on_host(host, line), **variables)
        for host, line in enumerate((command(tsv, out), second))
    ]
    for lines in finish(*both):
        assert len(lines) == 1
        assert lines[0].startswith(expected)
