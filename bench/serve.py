"""The translation server under load: dynamic batching, no batching, and a sequential loop.

    python bench/serve.py [RUN] [--clients 64] [--seconds 10] [--rounds 3] [--beam-size 1] [--smoke]

Every client sends one short sentence after the other over a connection of its own. Two servers run
at the same time, with and without dynamic batching, and take turns under load; in the same turns a
loop translates sentence by sentence with the same engine and no server at all, which no server
that handles one request at a time can beat. Without RUN, a Transformer of 4 + 4 layers and width
256 is trained for a few minutes on the phrasebook. `--smoke` runs everything once at a tiny size.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple
from urllib.parse import urlsplit

import regard
from regard.data import Corpus
from regard.data.phrasebook import load_phrasebook

SENTENCES = [pair.source for pair in load_phrasebook(train=0).valid[:64]]
WARMUP_SECONDS = 1.0
MODEL = {"model": {"width": 256, "layers": 4, "heads": 4, "ffn_width": 1024}}


class Load(NamedTuple):
    """Responses by status, and seconds of every successful request."""

    statuses: Counter[int]
    latencies: list[float]
    seconds: float

    @property
    def rate(self) -> float:
        """Successful requests per second."""
        return len(self.latencies) / self.seconds


def train_model(out: Path, steps: int) -> Path:
    """Train the model on the phrasebook; its translations have the usual lengths, if not words."""
    pairs = [pair.to_pair() for pair in load_phrasebook("fr", test=0).train]
    dataset = {"name": "phrasebook", "language": "fr", "split": "train"}
    corpus = Corpus.from_pairs("phrasebook fr", pairs, dataset)
    settings = [MODEL, {"train": {"steps": steps, "batch_tokens": 1024, "validate_every": steps}}]
    regard.train(corpus, out, settings=settings, echo=lambda line: None)
    return out


class Server:
    """`regard serve` in a process."""

    def __init__(self, run: Path, *options: str) -> None:
        command = [sys.executable, "-m", "regard", "serve", f"{run}=en:fr", "--no-token"]
        self.process = subprocess.Popen(
            [*command, "--port", "0", *options], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        match = re.search(r"http://\S+", self.process.stdout.readline())
        assert match, "the server did not print its URL"
        self.port = urlsplit(match[0]).port or 0

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait() == 0, "the server must end with exit code 0"

    def load(self, clients: int, seconds: float) -> Load:
        """Let clients send requests for some seconds."""
        return asyncio.run(_generate_load(self.port, clients, seconds))

    def mean_batch(self) -> float:
        """Return the mean number of lines of a batch, from the metrics."""
        text = asyncio.run(_get_metrics(self.port))
        total, count = (
            float(re.findall(rf"^regard_batch_sentences_{name} (\S+)", text, re.M)[0])
            for name in ("sum", "count")
        )
        return total / count


async def _generate_load(port: int, clients: int, seconds: float) -> Load:
    load = Load(Counter(), [], seconds)
    deadline = time.monotonic() + seconds
    await asyncio.gather(*(_run_client(port, n, deadline, load) for n in range(clients)))
    return load


async def _run_client(port: int, number: int, deadline: float, load: Load) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    turn = number
    while (start := time.monotonic()) < deadline:
        body = {"q": SENTENCES[turn % len(SENTENCES)], "source": "en", "target": "fr"}
        status, _ = await _request(reader, writer, port, "POST /translate", json.dumps(body))
        load.statuses[status] += 1
        if status == 200 and time.monotonic() <= deadline:
            load.latencies.append(time.monotonic() - start)
        turn += 1
    writer.close()
    await writer.wait_closed()


async def _get_metrics(port: int) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    _, body = await _request(reader, writer, port, "GET /metrics")
    writer.close()
    await writer.wait_closed()
    return body.decode()


async def _request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, line: str, body: str = ""
) -> tuple[int, bytes]:
    """Send a request over an open connection; clients of libraries take more of the CPU."""
    writer.write(
        f"{line} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
    )
    head = await reader.readuntil(b"\r\n\r\n")
    match = re.search(rb"content-length: (\d+)", head)
    assert match, head
    return int(head.split()[1]), await reader.readexactly(int(match[1]))


def run_loop(run: regard.Run, beam_size: int, seconds: float) -> float:
    """Translate one sentence after the other; return sentences per second."""
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        run.translate(SENTENCES[count % len(SENTENCES)], beam_size=beam_size)
        count += 1
    return count / (time.perf_counter() - start)


def measure(run: Path, clients: int, seconds: float, rounds: int, options: Sequence[str]) -> str:
    """Return a table of requests per second, latencies and ratios."""
    beam_size, quantization = int(options[1]), options[3]
    loaded = regard.load(run, quantization=None if quantization == "float32" else quantization)
    engine = loaded.engine.name
    loop_rates: list[float] = []
    loads: dict[str, list[Load]] = {"dynamic batching": [], "no batching": []}
    with ExitStack() as stack:
        servers = {
            "dynamic batching": stack.enter_context(Server(run, *options)),
            "no batching": stack.enter_context(Server(run, *options, "--max-batch-size", "1")),
        }
        run_loop(loaded, beam_size, WARMUP_SECONDS)
        for server in servers.values():
            server.load(clients, min(seconds, WARMUP_SECONDS))
        for _ in range(rounds):
            for name, server in servers.items():
                loads[name].append(server.load(clients, seconds))
            loop_rates.append(run_loop(loaded, beam_size, seconds))
        batches = {name: server.mean_batch() for name, server in servers.items()}
    lines = [
        f"## Server: {clients} clients, {engine} {quantization}, beam size {beam_size}, "
        f"{os.cpu_count()} cores\n",
        "| | requests/s | p50, ms | p95, ms | lines per batch | errors |",
        "|---|---|---|---|---|---|",
    ]
    for name, results in loads.items():
        latencies = [each for load in results for each in load.latencies]
        errors = sum(load.statuses.total() - load.statuses[200] for load in results)
        p95 = quantiles(latencies, n=20)[-1]
        lines.append(
            f"| {name} | {median(load.rate for load in results):.0f} | "
            f"{1000 * median(latencies):.0f} | {1000 * p95:.0f} | {batches[name]:.1f} | {errors} |"
        )
    lines.append(f"| loop without a server | {median(loop_rates):.0f} | | | 1.0 | 0 |\n")
    dynamic, single = loads["dynamic batching"], loads["no batching"]
    over_single = median(a.rate / b.rate for a, b in zip(dynamic, single, strict=True))
    over_loop = median(a.rate / b for a, b in zip(dynamic, loop_rates, strict=True))
    lines.append(
        f"Dynamic batching / none: {over_single:.2f} (goal 4); dynamic batching / loop: "
        f"{over_loop:.2f} (goal 3)."
    )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", nargs="?", type=Path)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beam-size", type=int, default=1)
    parser.add_argument("--quantization", default="float32")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args(arguments)
    if options.smoke:
        options.clients, options.seconds, options.rounds = 4, 0.5, 1
    with tempfile.TemporaryDirectory() as folder:
        run = options.run or train_model(Path(folder) / "run", options.steps)
        search = ["--beam-size", str(options.beam_size), "--quantization", options.quantization]
        print(measure(run, options.clients, options.seconds, options.rounds, search))


if __name__ == "__main__":
    main()
