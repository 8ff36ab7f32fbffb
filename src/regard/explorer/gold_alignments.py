"""Gold word alignments of the phrasebook's sentence pairs."""

from collections.abc import Iterable
from functools import cache
from threading import Lock, Thread
from typing import cast

from regard.data import WordSpans
from regard.data.phrasebook import AlignedPair, Language, load_phrasebook

_LOCK = Lock()  # the first caller builds the phrasebook, others wait for it


def find_gold_alignment(language: str | None, source: str, target: str) -> WordSpans | None:
    """Return words and links of a pair if the phrasebook of that language contains it."""
    if language is None:
        return None
    with _LOCK:
        phrase = _phrases(language).get((source, target))
    return None if phrase is None else phrase.word_spans()


def preload(languages: Iterable[str | None]) -> Thread:
    """Build phrasebooks in a background thread: the first request need not wait for seconds."""
    wanted = sorted({language for language in languages if language})
    thread = Thread(
        target=lambda: [find_gold_alignment(language, "", "") for language in wanted], daemon=True
    )
    thread.start()
    return thread


@cache
def _phrases(language: str) -> dict[tuple[str, str], AlignedPair]:
    book = load_phrasebook(cast(Language, language))
    return {(phrase.source, phrase.target): phrase for part in book for phrase in part}
