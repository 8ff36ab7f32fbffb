"""Positions of tokens, found by their text."""

from collections.abc import Sequence
from typing import Any

from regard.capture.hf_tokens import WORD_CONTINUATION, WORD_STARTS, tokens_of_inputs
from regard.errors import RegardError
from regard.trace import TokenList


def tokens_of(
    text: str,
    tokens: TokenList | Sequence[str] | None = None,
    *,
    tokenizer: Any = None,
    inputs: Any = None,
    batch_index: int = 0,
) -> list[int]:
    """Return the positions of the tokens that spell a text, wherever it occurs.

    Args:
        text: a word or several; spaces and the marks of subword tokenizers are ignored.
        tokens: the tokens that the model reads.
        tokenizer: a tokenizer of transformers, instead of `tokens`.
        inputs: with it, what the tokenizer returned.
        batch_index: which item of the batch of `inputs`.

    Returns:
        Positions in ascending order.

    Raises:
        RegardError: if the text does not occur, or neither tokens nor a tokenizer are given.

    Example:
        >>> tokens_of("Paris", ["The", "▁mayor", "▁of", "▁Par", "is", "▁sleeps"])
        [3, 4]
    """
    if tokens is None:
        if tokenizer is None or inputs is None:
            raise RegardError("tokens_of needs tokens, or tokenizer= and inputs= together")
        tokens = tokens_of_inputs(tokenizer, inputs, batch_index).source
    pieces = tokens.pieces if isinstance(tokens, TokenList) else list(tokens)
    spelled = [_spelling(piece) for piece in pieces]
    wanted = "".join(text.split())
    positions = {n for first in range(len(spelled)) for n in _match_from(spelled, first, wanted)}
    if not positions:
        raise RegardError(f"no tokens spell {text!r}; the tokens are {' '.join(pieces)}")
    return sorted(positions)


def _match_from(spelled: Sequence[str], first: int, wanted: str) -> range:
    """Return the tokens from the first on that spell the text exactly; empty if they do not."""
    joined = ""
    for last in range(first, len(spelled)):
        joined += spelled[last]
        if joined == wanted and spelled[first]:
            return range(first, last + 1)
        if not wanted.startswith(joined):
            break
    return range(0)


def _spelling(piece: str) -> str:
    for mark in (*WORD_STARTS, WORD_CONTINUATION):
        piece = piece.removeprefix(mark)
    return "".join(piece.split())
