"""The words that a model was trained with, where they are known."""

from regard.data import unseen_words
from regard.data.phrasebook import load_source_words, phrasebook_language
from regard.runs.folder import RunFolder


def load_training_words(folder: RunFolder) -> frozenset[str] | None:
    """Return the source words of a run's training data in lower case, if it is the phrasebook.

    The words of other corpora are not stored: too many of them occur only once to tell a word that
    a model can translate from one that it cannot.
    """
    language = phrasebook_language(folder.read_settings()[1].get("dataset"))
    return load_source_words(language) if language else None


def find_unseen_words(folder: RunFolder, text: str) -> list[str]:
    """Return the words of a text that are known to be missing from the training data."""
    words = load_training_words(folder)
    return [] if words is None else unseen_words([text], words)
