"""Metrics of the server for Prometheus, of one process or of all worker processes together."""

import os
from contextlib import suppress
from pathlib import Path

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.web import RequestMiddleware

MULTIPROCESS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # read by prometheus_client when it is imported
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64)
LATENCIES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
PATHS = ("/translate", "/languages", "/health", "/metrics", "/docs", "/openapi.json")


class Metrics:
    """Counters, gauges and histograms of a server, in a registry of their own."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        self.requests = Counter(
            "regard_requests",
            "Requests, by path and status.",
            ["path", "status"],
            registry=registry,
        )
        self.latency = Histogram(
            "regard_request_seconds",
            "Seconds from a request for a translation to its response.",
            buckets=LATENCIES,
            registry=registry,
        )
        self.sentences = Counter(
            "regard_sentences",
            "Translated lines, by languages.",
            ["source", "target"],
            registry=registry,
        )
        self.batch_size = Histogram(
            "regard_batch_sentences",
            "Lines that were translated together.",
            buckets=BATCH_SIZES,
            registry=registry,
        )
        self.in_progress = Gauge(
            "regard_sentences_in_progress",
            "Lines that wait or are being translated.",
            multiprocess_mode="livesum",
            registry=registry,
        )
        self.reloads = Counter(
            "regard_reloads", "Models replaced after their run was retrained.", registry=registry
        )

    def render(self) -> bytes:
        """Return the metrics in Prometheus' text format, summed over all workers."""
        if MULTIPROCESS_FOLDER not in os.environ:
            return bytes(generate_latest(self._registry))
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return bytes(generate_latest(registry))


class MetricsMiddleware(RequestMiddleware):
    """Counts responses by path and status."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        super().__init__(app)
        self._metrics = metrics

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and count its response."""
        path = scope["path"] if scope["path"] in PATHS else "other"

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.requests.labels(path, str(message["status"])).inc()
            await send(message)

        await self.app(scope, receive, send_counted)


def forget_worker(process_id: int | None, folder: Path) -> None:
    """Remove the gauges of a worker process that has ended."""
    with suppress(OSError):
        mark_process_dead(process_id, str(folder))  # type: ignore[no-untyped-call]
