"""A run that is served: loaded with an engine, and loaded again when it was retrained."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from regard.decoding import sentence_batches
from regard.errors import RegardError
from regard.runs import Fingerprint, Run, RunFolder, fingerprint_run, load
from regard.serving.languages import LanguagePair

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class LoadedRun:
    """A run as it was at one time; requests finish with the one they began with.

    Attributes:
        run: the run.
        beam_size: number of beams; the run's own if None. A request for more translations enlarges
            the beam to their number.
    """

    run: Run
    beam_size: int | None = None

    @property
    def max_length(self) -> int | None:
        """Greatest number of tokens of a sentence; None if the model has no limit."""
        return self.run.model.max_length

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return the token ids of sentences, white space around which is ignored."""
        return self.run.tokenizers.source.encode_batch([each.strip() for each in sentences])

    def translate(
        self,
        sources: Sequence[Sequence[int]],
        n_best: int = 1,
        should_stop: Callable[[], bool] | None = None,
    ) -> list[list[str]]:
        """Return the best translations of each source, in batches of similar length."""
        run = self.run
        beam_size = None if self.beam_size is None else max(self.beam_size, n_best)
        options = run.translation_options(beam_size=beam_size, n_best=n_best)
        texts = [[""] * n_best for _ in sources]
        for batch in sentence_batches(run.model, run.tokenizers, sources, options):
            translations = run.engine.translate_batch(batch, options, should_stop)
            for row, alternatives in zip(batch.rows, translations, strict=True):
                texts[row] = [translation.text for translation in alternatives]
        return texts


class ServedRun:
    """A run folder with the model loaded from it; `reload_if_changed` replaces the model.

    Args:
        path: the run folder.
        languages: what it translates from and to.
        engine: what translates; see `load`.
        quantization: of CTranslate2; see `load`.
        beam_size: number of beams; the run's own if None.
        threads: how many batches CTranslate2 translates at the same time.

    Raises:
        RegardError: if the run cannot be loaded.
    """

    def __init__(
        self,
        path: Path,
        languages: LanguagePair,
        engine: str = "auto",
        quantization: str | None = None,
        beam_size: int | None = None,
        threads: int = 1,
    ) -> None:
        self.languages = languages
        self._folder = RunFolder(path)
        self._engine, self._quantization = engine, quantization
        self._beam_size, self._threads = beam_size, threads
        self._fingerprint: Fingerprint = fingerprint_run(self._folder)
        self.current = self._load()

    def reload_if_changed(self) -> bool:
        """Load the run if its files have changed; return whether it was replaced.

        Files that do not fit together yet, since training is writing them, leave it as it is.
        """
        fingerprint = fingerprint_run(self._folder)
        if fingerprint == self._fingerprint or None in fingerprint:
            return False
        self._fingerprint = fingerprint  # not tried again until a file changes
        try:
            self.current = self._load()
        except RegardError as error:
            logger.warning("keeping the loaded model of %s: %s", self.languages, error)
            return False
        logger.info("reloaded the model of %s", self.languages)
        return True

    def _load(self) -> LoadedRun:
        torch.set_num_threads(self._threads)  # of which CTranslate2 starts as many
        run = load(self._folder.path, engine=self._engine, quantization=self._quantization)
        loaded = LoadedRun(run, self._beam_size)
        loaded.translate(loaded.encode(["."]))  # the first translation converts the model
        return loaded
