"""Translation of requests: pairs of languages, dynamic batching, hot reload."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from starlette.exceptions import HTTPException

from regard._support.resources import single_threaded, usable_cores
from regard.serving.dynamic_batching import (
    MAX_BATCH_SIZE,
    MAX_QUEUE_SIZE,
    DynamicBatcher,
    QueueFullError,
)
from regard.serving.languages import LanguagePair, check_languages, language_name
from regard.serving.prometheus import Metrics
from regard.serving.schemas import LIMITS, ServingLimits, SupportedLanguage
from regard.serving.served_run import LoadedRun, ServedRun

RELOAD_INTERVAL_SECONDS = 2.0

logger = logging.getLogger(__name__)


class TranslationService:
    """Translates texts with the run of their languages.

    Args:
        runs: one for each pair of languages.
        metrics: what is counted.
        limits: largest values of a request.
        threads: how many batches are translated at the same time.
        max_batch_size: lines of a batch; 1 disables dynamic batching.
        max_queue_size: lines that may wait; a request beyond them gets 503.
        reload_seconds: interval in which run folders are checked for changes.

    Raises:
        RegardError: if two runs have the same languages.
    """

    def __init__(
        self,
        runs: Sequence[ServedRun],
        metrics: Metrics | None = None,
        limits: ServingLimits = LIMITS,
        *,
        threads: int | None = None,
        max_batch_size: int = MAX_BATCH_SIZE,
        max_queue_size: int = MAX_QUEUE_SIZE,
        reload_seconds: float = RELOAD_INTERVAL_SECONDS,
    ) -> None:
        self.metrics = metrics or Metrics()
        self.limits = limits
        self._max_lines = max_queue_size
        check_languages([run.languages for run in runs])
        self._runs = {run.languages: run for run in runs}
        self._reload_seconds = reload_seconds
        threads = threads or usable_cores()
        self._executor = ThreadPoolExecutor(threads, initializer=single_threaded)
        self._batcher = DynamicBatcher[tuple[LoadedRun, int], list[int], list[str]](
            _translate_batch,
            self._executor,
            threads,
            max_batch_size=max_batch_size,
            max_queue_size=max_queue_size,
            on_batch=self.metrics.batch_size.observe,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Process batches and reload changed runs meanwhile."""
        tasks = [asyncio.create_task(self._batcher.run()), asyncio.create_task(self._reload())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._executor.shutdown(wait=False, cancel_futures=True)

    def languages(self) -> list[SupportedLanguage]:
        """Return the languages in the order of the runs, each with its targets."""
        codes = dict.fromkeys(code for pair in self._runs for code in pair)
        return [
            SupportedLanguage(
                code=code,
                name=language_name(code),
                targets=[pair.target for pair in self._runs if pair.source == code],
            )
            for code in codes
        ]

    async def translate(
        self, texts: Sequence[str], pair: LanguagePair, n_best: int = 1
    ) -> list[list[str]]:
        """Return the best translations of each text; each line of a text is a sentence.

        Raises:
            HTTPException: 400 if the texts are too long or too many, or the languages are not
                served; 503 with Retry-After if the queue is full or the deadline has passed.
        """
        self._check_size(texts)
        loaded = self._find(pair).current
        lines = [text.split("\n") for text in texts]
        flat = [line for each in lines for line in each]
        self._check_lines(len(flat))
        sources = loaded.encode(flat)
        self._check_lengths(sources, loaded.max_length)
        self.metrics.in_progress.inc(len(flat))
        try:
            results = iter(await self._submit(loaded, sources, n_best))
        finally:
            self.metrics.in_progress.dec(len(flat))
        self.metrics.sentences.labels(*pair).inc(len(flat))
        by_text = [[next(results) for _ in each] for each in lines]
        return [["\n".join(column) for column in zip(*each, strict=True)] for each in by_text]

    async def _submit(
        self, loaded: LoadedRun, sources: Sequence[list[int]], n_best: int
    ) -> list[list[str]]:
        try:
            async with asyncio.timeout(self.limits.timeout_seconds):
                return await self._batcher.submit((loaded, n_best), sources)
        except QueueFullError as error:
            message = "the queue is full; try again in a moment"
            raise HTTPException(503, message, {"Retry-After": "1"}) from error
        except TimeoutError as error:
            message = f"the request took longer than {self.limits.timeout_seconds:g} seconds"
            raise HTTPException(503, message, {"Retry-After": "5"}) from error

    def _check_size(self, texts: Sequence[str]) -> None:
        if len(texts) > self.limits.max_texts:
            message = f"q must have at most {self.limits.max_texts} texts, but it has {len(texts)}"
            raise HTTPException(400, message)
        size = sum(map(len, texts))
        if size > self.limits.max_characters:
            raise HTTPException(
                400,
                f"q must have at most {self.limits.max_characters} characters, but it has {size}",
            )

    def _check_lines(self, lines: int) -> None:
        """Refuse more lines than the queue can ever hold: trying again would not help."""
        if lines > self._max_lines:
            message = f"q must have at most {self._max_lines} lines, but it has {lines}"
            raise HTTPException(400, message)

    def _check_lengths(self, sources: Sequence[Sequence[int]], max_length: int | None) -> None:
        limit = self.limits.max_tokens
        if max_length is not None:
            limit = min(limit, max_length)  # the run would translate only so many of them
        longest = max(map(len, sources), default=0)
        if longest > limit:
            raise HTTPException(
                400,
                f"a line must have at most {limit} tokens, but one has {longest}; send a sentence "
                "per line",
            )

    def _find(self, pair: LanguagePair) -> ServedRun:
        if pair in self._runs:
            return self._runs[pair]
        codes = {code for known in self._runs for code in known}
        for code in pair:
            if code == "auto":
                raise HTTPException(400, "languages are not detected; give the source language")
            if code not in codes:
                raise HTTPException(400, f"{code} is not supported")
        source, target = map(language_name, pair)
        raise HTTPException(
            400,
            f"{target} ({pair.target}) is not available as a target language from "
            f"{source} ({pair.source})",
        )

    async def _reload(self) -> None:
        while True:
            await asyncio.sleep(self._reload_seconds)
            for run in self._runs.values():
                try:
                    is_replaced = await asyncio.to_thread(run.reload_if_changed)
                except Exception:
                    logger.exception("cannot reload the model of %s", run.languages)
                else:
                    self.metrics.reloads.inc(int(is_replaced))


def _translate_batch(
    key: tuple[LoadedRun, int], sources: list[list[int]], should_stop: Callable[[], bool]
) -> list[list[str]]:
    loaded, n_best = key
    return loaded.translate(sources, n_best, should_stop)
