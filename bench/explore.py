"""The explorer under load: many clients translate short sentences at the same time.

    python bench/explore.py [RUN] [--clients 64] [--seconds 60] [--impatient]

Without RUN, the demo's model is used. A client that gets 503 waits as long as Retry-After says and
tries again; an impatient one tries again at once. Meanwhile another process opens the page,
`GET /`, over a new connection each time; its latency includes retries. Needs `httpx2`.
"""

import argparse
import json
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
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2

from regard.data.phrasebook import load_phrasebook
from regard.demo import load_or_train

SENTENCES = [pair.source for pair in load_phrasebook(train=0).valid[:64]]
WARMUP_SECONDS = 2.0
CLIENT_TIMEOUT_SECONDS = 60
PAGE_READER = Path(__file__).with_name("open_page.py")


def start_server(run: Path) -> tuple[subprocess.Popen[str], str, str]:
    """Start `regard explore` in a process; return it with its URL and token."""
    command = [sys.executable, "-m", "regard", "explore", str(run), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    match = re.search(r"http://\S+", server.stdout.readline())
    assert match, "the server did not print its URL"
    url = urlsplit(match[0])
    return server, f"http://{url.netloc}/", parse_qs(url.query).get("token", ["none"])[0]


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
    is_patient: bool,
    statuses: Counter[int],
    latencies: list[float],
) -> None:
    """Translate one random sentence after the other; record statuses and seconds per success."""
    while time.monotonic() < deadline:
        start = time.monotonic()
        body = {"run": run, "text": rng.choice(SENTENCES)}
        try:
            response = await http.post("/api/translate", json=body)
        except httpx2.TransportError:  # as when the server closes a connection that was idle
            statuses[0] += 1
            continue
        statuses[response.status_code] += 1
        if response.status_code == 200:
            assert response.json()["translations"]
            latencies.append(time.monotonic() - start)
        elif is_patient:
            await anyio.sleep(float(response.headers.get("retry-after", 1)))


async def generate_load(
    url: str,
    token: str,
    run: str,
    clients: int,
    seconds: float,
    is_patient: bool = True,
) -> tuple[Counter[int], list[float]]:
    """Run clients concurrently; return responses by status and latencies of the successful ones."""
    statuses, latencies = Counter[int](), list[float]()
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=clients)
    timeout = CLIENT_TIMEOUT_SECONDS
    async with httpx2.AsyncClient(
        base_url=url,
        headers={"Authorization": f"Bearer {token}"},
        timeout=timeout,
        limits=limits,
    ) as http:
        deadline = time.monotonic() + seconds
        async with anyio.create_task_group() as tasks:
            for seed in range(clients):
                rng = Random(seed)
                tasks.start_soon(
                    translate_until, http, rng, run, deadline, is_patient, statuses, latencies
                )
    return statuses, latencies


def format_latencies(seconds: Sequence[float]) -> str:
    """Return median and 95th percentile in milliseconds."""
    return f"p50 {1000 * median(seconds):.0f} ms, p95 {1000 * quantiles(seconds, n=20)[-1]:.0f} ms"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", nargs="?", type=Path)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--impatient", action="store_true")
    options = parser.parse_args(arguments)
    clients, seconds = options.clients, options.seconds
    path = options.run or load_or_train().folder.path
    name = path.resolve().name
    server, url, token = start_server(path)
    try:
        warmup = min(seconds, WARMUP_SECONDS)
        anyio.run(generate_load, url, token, name, 1, warmup)  # the first request loads the model
        memory_before = resident_memory_mib(server.pid)
        reader = subprocess.Popen(
            [sys.executable, str(PAGE_READER), url, token],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        statuses, latencies = anyio.run(
            generate_load, url, token, name, clients, seconds, not options.impatient
        )
        page_latencies = json.loads(reader.communicate()[0])
        memory_after = resident_memory_mib(server.pid)
    finally:
        os.kill(server.pid, signal.SIGTERM)
        exit_code = server.wait()
    print(f"## The explorer: {clients} clients, {seconds:g} s, {os.cpu_count()} cores\n")
    print("| responses | " + " | ".join(f"status {status}" for status in sorted(statuses)) + " |")
    print("|---|" + "---|" * len(statuses))
    print("| count | " + " | ".join(str(statuses[status]) for status in sorted(statuses)) + " |\n")
    if len(latencies) > 1:
        rate = len(latencies) / seconds
        print(f"Latency of 200: {format_latencies(latencies)}; {rate:.1f} per second.")
    if len(page_latencies) > 1:
        print(f"Latency of the page: {format_latencies(page_latencies)}.")
    print(
        f"Server memory: {memory_before:.0f} MiB before, {memory_after:.0f} MiB after; "
        f"exit code {exit_code} after SIGTERM."
    )


if __name__ == "__main__":
    main()
