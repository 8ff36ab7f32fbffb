"""Which words belong together, for the sentences of the phrasebook."""

from collections.abc import Iterable
from functools import cache
from threading import Lock, Thread
from typing import cast

from regard.data import WordSpans
from regard.data.phrasebook import AlignedPair, load_phrasebook
from regard.demo.models import Language

_LOCK = Lock()  # the phrasebook is written out once, by whoever asks first


def words(language: str | None, source: str, target: str) -> WordSpans | None:
    """Find the words and links of a pair, if the phrasebook of that language has it."""
    if language is None:
        return None
    with _LOCK:
        phrase = _phrases(language).get((source, target))
    return None if phrase is None else phrase.word_spans()


def prepare(languages: Iterable[str | None]) -> Thread:
    """Write phrasebooks out meanwhile, so that the first who asks need not wait for seconds."""
    wanted = sorted({language for language in languages if language})
    thread = Thread(target=lambda: [words(each, "", "") for each in wanted], daemon=True)
    thread.start()
    return thread


@cache
def _phrases(language: str) -> dict[tuple[str, str], AlignedPair]:
    book = load_phrasebook(cast(Language, language))
    return {(phrase.source, phrase.target): phrase for part in book for phrase in part}
