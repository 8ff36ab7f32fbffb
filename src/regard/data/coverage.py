"""Input that a model was not trained for: unknown characters, and too long sentences."""

from collections.abc import Sequence

from regard._support.plural import count
from regard.data.tokenizer import Tokenizer

MAX_UNKNOWN_SHARE = 0.5  # of the characters of a sentence
EXAMPLE_CHARACTERS = 20


def input_warnings(
    tokenizer: Tokenizer, sentences: Sequence[str], max_length: int
) -> dict[str, str]:
    """Return warnings of sentences that are unlike the training data: of characters and length.

    Args:
        tokenizer: the tokenizer of the source.
        sentences: the sentences.
        max_length: the most tokens of a training sentence.

    Example:
        >>> tokenizer = Tokenizer("words", [" the", " cat"])
        >>> input_warnings(tokenizer, ["the cat", "مرحبا"], max_length=128)["characters"]
        "most characters of 1 sentence are not in the model's vocabulary, such as 'مرحبا'"
    """
    known = {character for piece in tokenizer.pieces for character in piece}
    unknown = [text for text in sentences if _unknown_share(text, known) > MAX_UNKNOWN_SHARE]
    warnings = {}
    if unknown:
        warnings["characters"] = (
            f"most characters of {count(len(unknown), 'sentence')} are not in the model's "
            f"vocabulary, such as {_shorten(unknown[0])!r}"
        )
    lengths = [len(tokens) for tokens in tokenizer.encode_batch(sentences)]
    too_long = sum(length > max_length for length in lengths)
    if too_long:
        verb = "is" if too_long == 1 else "are"
        warnings["length"] = (
            f"{count(too_long, 'sentence')} {verb} longer than any in training: "
            f"{max(lengths):,} tokens, but at most {max_length:,} were seen; split the text into "
            "sentences"
        )
    return warnings


def _unknown_share(text: str, known: set[str]) -> float:
    characters = [character for character in text if not character.isspace()]
    unknown = sum(character not in known for character in characters)
    return unknown / max(len(characters), 1)


def _shorten(text: str) -> str:
    text = text.strip()
    return text if len(text) <= EXAMPLE_CHARACTERS else f"{text[:EXAMPLE_CHARACTERS]}…"
