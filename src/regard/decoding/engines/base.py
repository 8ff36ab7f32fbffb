"""The contract of an engine, which searches the translations of batches of sentences."""

from typing import Protocol, runtime_checkable

from regard.decoding.search import ShouldStop
from regard.decoding.sentences import SentenceBatch, Translation, TranslationOptions


@runtime_checkable
class Engine(Protocol):
    """What translates batches of sentences; called from several threads at once."""

    @property
    def name(self) -> str:
        """Name of the engine, such as "torch"."""

    def translate_batch(
        self,
        batch: SentenceBatch,
        options: TranslationOptions,
        should_stop: ShouldStop | None = None,
    ) -> list[list[Translation]]:
        """Return the translations of each sentence of a batch, best first.

        Raises:
            DecodingCancelled: if `should_stop` returned True.
        """
