"""The explorer under load: many clients translate short sentences, for a minute.

    python bench/explore.py [RUN] [--clients 64] [--seconds 60]

Who is sent away with 503 comes again when Retry-After says. Needs `pip install httpx2`.
"""

import argparse
import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from statistics import median, quantiles

import httpx2

from regard.data.phrasebook import load_phrasebook
from regard.demo.models import load_or_train

SENTENCES = [pair.source for pair in load_phrasebook(train=0).valid[:64]]


def start(run: Path) -> tuple[subprocess.Popen[str], str]:
    """Start a server, and give its address."""
    command = [sys.executable, "-m", "regard", "explore", str(run), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    address = re.search(r"http://\S+", server.stdout.readline())
    assert address, "the server says where it is"
    return server, address[0]


def memory(process: int) -> float:
    """Give the memory of a process in MiB."""
    status = Path(f"/proc/{process}/status").read_text()
    match = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert match, "Linux says how much memory a process has"
    return int(match[1]) / 1024


async def client(
    http: httpx2.AsyncClient,
    chance: Random,
    run: str,
    until: float,
    seen: Counter[int],
    times: list[float],
) -> None:
    """Translate one sentence after the other."""
    while time.monotonic() < until:
        begun = time.monotonic()
        form = {"run": run, "text": chance.choice(SENTENCES)}
        answer = await http.post("/api/translate", json=form)
        seen[answer.status_code] += 1
        if answer.status_code == 200:
            assert answer.json()["translations"]
            times.append(time.monotonic() - begun)
        else:
            await asyncio.sleep(float(answer.headers.get("retry-after", 1)))


async def load(
    address: str, run: str, clients: int, seconds: float
) -> tuple[Counter[int], list[float]]:
    """Let many clients ask at once; count answers by status, and time those that were accepted."""
    seen, times = Counter[int](), list[float]()
    every = httpx2.Limits(max_connections=None, max_keepalive_connections=clients)
    async with httpx2.AsyncClient(base_url=address, timeout=60, limits=every) as http:
        until = time.monotonic() + seconds
        chances = [Random(number) for number in range(clients)]
        await asyncio.gather(*(client(http, chance, run, until, seen, times) for chance in chances))
    return seen, times


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", nargs="?", type=Path)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    asked = parser.parse_args()
    run = asked.run or load_or_train().folder.path
    server, address = start(run)
    try:
        asyncio.run(load(address, run.resolve().name, 1, min(asked.seconds, 2)))  # loads the model
        before = memory(server.pid)
        seen, times = asyncio.run(load(address, run.resolve().name, asked.clients, asked.seconds))
        after = memory(server.pid)
    finally:
        os.kill(server.pid, signal.SIGTERM)
        code = server.wait()
    print(
        f"## The explorer: {asked.clients} clients, {asked.seconds:g} s, {os.cpu_count()} cores.\n"
    )
    print("| answers | " + " | ".join(f"status {status}" for status in sorted(seen)) + " |")
    print("|---|" + "---|" * len(seen))
    print("| count | " + " | ".join(str(seen[status]) for status in sorted(seen)) + " |\n")
    if len(times) > 1:
        usual, slow = median(times) * 1000, quantiles(times, n=20)[-1] * 1000
        rate = len(times) / asked.seconds
        print(
            f"Accepted: median {usual:.0f} ms, 95 of 100 within {slow:.0f} ms, {rate:.0f} a second."
        )
    print(f"Memory of the server: {before:.0f} MiB before, {after:.0f} MiB after. Exit {code}.")


if __name__ == "__main__":
    main()
