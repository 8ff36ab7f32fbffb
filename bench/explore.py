"""The explorer under load: many clients translate short sentences at the same time.

    python bench/explore.py [RUN] [--clients 64] [--seconds 60]

Without RUN, the demo's model is used. A client that gets 503 waits as long as Retry-After says and
tries again. Needs `pip install httpx2`.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import median, quantiles

import anyio
import httpx2

from regard.data.phrasebook import load_phrasebook
from regard.demo import load_or_train

SENTENCES = [pair.source for pair in load_phrasebook(train=0).valid[:64]]
WARMUP_SECONDS = 2.0
CLIENT_TIMEOUT_SECONDS = 60


def start_server(run: Path) -> tuple[subprocess.Popen[str], str]:
    """Start `regard explore` in a process and return it with its URL."""
    command = [sys.executable, "-m", "regard", "explore", str(run), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    url = re.search(r"http://\S+", server.stdout.readline())
    assert url, "the server did not print its URL"
    return server, url[0]


def resident_memory_mib(process_id: int) -> float:
    """Return the resident memory of a process in MiB (Linux only)."""
    status = Path(f"/proc/{process_id}/status").read_text()
    match = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert match, "/proc has no VmRSS"
    return int(match[1]) / 1024


async def translate_until(
    http: httpx2.AsyncClient,
    rng: Random,
    run: str,
    deadline: float,
    statuses: Counter[int],
    latencies: list[float],
) -> None:
    """Translate one random sentence after the other; record statuses and seconds per success."""
    while time.monotonic() < deadline:
        start = time.monotonic()
        body = {"run": run, "text": rng.choice(SENTENCES)}
        response = await http.post("/api/translate", json=body)
        statuses[response.status_code] += 1
        if response.status_code == 200:
            assert response.json()["translations"]
            latencies.append(time.monotonic() - start)
        else:
            await anyio.sleep(float(response.headers.get("retry-after", 1)))


async def generate_load(
    url: str, run: str, clients: int, seconds: float
) -> tuple[Counter[int], list[float]]:
    """Run clients concurrently; return responses by status and latencies of the successful ones."""
    statuses, latencies = Counter[int](), list[float]()
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=clients)
    timeout = CLIENT_TIMEOUT_SECONDS
    async with httpx2.AsyncClient(base_url=url, timeout=timeout, limits=limits) as http:
        deadline = time.monotonic() + seconds
        async with anyio.create_task_group() as tasks:
            for seed in range(clients):
                tasks.start_soon(
                    translate_until, http, Random(seed), run, deadline, statuses, latencies
                )
    return statuses, latencies


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", nargs="?", type=Path)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args(arguments)
    clients, seconds = options.clients, options.seconds
    path = options.run or load_or_train().folder.path
    name = path.resolve().name
    server, url = start_server(path)
    try:
        warmup = min(seconds, WARMUP_SECONDS)
        anyio.run(generate_load, url, name, 1, warmup)  # the first request loads the model
        memory_before = resident_memory_mib(server.pid)
        statuses, latencies = anyio.run(generate_load, url, name, clients, seconds)
        memory_after = resident_memory_mib(server.pid)
    finally:
        os.kill(server.pid, signal.SIGTERM)
        exit_code = server.wait()
    print(f"## The explorer: {clients} clients, {seconds:g} s, {os.cpu_count()} cores\n")
    print("| responses | " + " | ".join(f"status {status}" for status in sorted(statuses)) + " |")
    print("|---|" + "---|" * len(statuses))
    print("| count | " + " | ".join(str(statuses[status]) for status in sorted(statuses)) + " |\n")
    if len(latencies) > 1:
        p50, p95 = 1000 * median(latencies), 1000 * quantiles(latencies, n=20)[-1]
        rate = len(latencies) / seconds
        print(f"Latency of 200: p50 {p50:.0f} ms, p95 {p95:.0f} ms; {rate:.1f} per second.")
    print(
        f"Server memory: {memory_before:.0f} MiB before, {memory_after:.0f} MiB after; "
        f"exit code {exit_code} after SIGTERM."
    )


if __name__ == "__main__":
    main()
