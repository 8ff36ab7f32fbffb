"""Gold word alignments of the phrasebook's sentence pairs."""

from collections.abc import Iterable
from functools import cache
from threading import Lock, Thread
from typing import cast

from regard.data import WordSpans
from regard.data.phrasebook import AlignedPair, Language, load_phrasebook

_LOCK = Lock()  # the first caller loads the phrasebook, others wait for it


def find_gold_alignment(language: str | None, source: str, target: str) -> WordSpans | None:
    """Return words and links of a pair if the phrasebook of that language contains it."""
    if language is None:
        return None
    with _LOCK:
        pair = _pairs_by_text(language).get((source, target))
    return None if pair is None else pair.word_spans()


def preload(languages: Iterable[str | None]) -> Thread:
    """Load phrasebooks in a background thread: the first request need not wait for a second."""
    known = sorted({language for language in languages if language})
    thread = Thread(
        target=lambda: [find_gold_alignment(language, "", "") for language in known], daemon=True
    )
    thread.start()
    return thread


@cache
def _pairs_by_text(language: str) -> dict[tuple[str, str], AlignedPair]:
    book = load_phrasebook(cast(Language, language))
    return {(pair.source, pair.target): pair for split in book for pair in split}
