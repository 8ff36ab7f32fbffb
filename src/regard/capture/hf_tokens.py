"""Tokens of a Hugging Face model: token lists of its inputs, from the ids and its tokenizer."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from regard.errors import RegardError
from regard.trace import TokenList

UNKNOWN = "…"  # the start token, where only labels are given
IGNORED_LABEL = -100  # label of padding, which the loss leaves out
WORD_STARTS = ("▁", "Ġ")  # of SentencePiece and of byte-level BPE
WORD_CONTINUATION = "##"  # of WordPiece


class ModelTokens(NamedTuple):
    """The tokens of one batch item: what the encoder reads, the decoder reads and writes."""

    source: TokenList
    target: TokenList | None = None
    written: TokenList | None = None


def tokens_of_inputs(tokenizer: Any, inputs: Any, batch_index: int = 0) -> ModelTokens:
    """Return the tokens of one batch item of a model's inputs.

    Args:
        tokenizer: a tokenizer of transformers.
        inputs: what the model was called with: `input_ids`, and if there are any
            `attention_mask`, `decoder_input_ids`, `decoder_attention_mask` and `labels`. Or
            `input_ids` alone.
        batch_index: which item of the batch.

    Raises:
        RegardError: if there are no `input_ids`, or no such batch item.
    """
    given: Any = inputs if isinstance(inputs, Mapping) or hasattr(inputs, "keys") else {}
    ids = inputs if isinstance(inputs, Tensor) else given.get("input_ids")
    if ids is None:
        names = ", ".join(map(str, given)) or type(inputs).__name__
        raise RegardError(f"inputs must have input_ids, as a tokenizer returns, but have {names}")

    def row(name: str) -> list[int] | None:
        return None if given.get(name) is None else _batch_item(given[name], batch_index, name)

    item, words = _batch_item(ids, batch_index, "input_ids"), None
    if getattr(given, "is_fast", False):
        words = tuple(given.word_ids(batch_index))
    source = _token_list(tokenizer, item, row("attention_mask"), words)
    read, labels = row("decoder_input_ids"), row("labels")
    written = None if labels is None else _token_list(tokenizer, labels)
    if read is not None:
        target = _token_list(tokenizer, read, row("decoder_attention_mask"))
        return ModelTokens(source, target, written)
    return ModelTokens(source, None if written is None else _start_unknown(written), written)


def _batch_item(ids: Any, batch_index: int, name: str) -> list[int]:
    rows = ids.tolist() if isinstance(ids, Tensor) else list(ids)
    rows = rows if rows and not isinstance(rows[0], int) else [rows]  # one text, without a batch
    if not 0 <= batch_index < len(rows):
        raise RegardError(
            f"batch_index must be from 0 to {len(rows) - 1}, the batch of {name}, but it is "
            f"{batch_index}"
        )
    return list(rows[batch_index])


def _token_list(
    tokenizer: Any,
    ids: Sequence[int],
    mask: Sequence[int] | None = None,
    words: tuple[int | None, ...] | None = None,
) -> TokenList:
    padding = [n for n, i in enumerate(ids) if i == IGNORED_LABEL or (mask and not mask[n])]
    filler = getattr(tokenizer, "pad_token_id", None) or 0
    known = [filler if i == IGNORED_LABEL else i for i in ids]
    pieces = tuple(
        f"<{token_id}>" if piece is None else piece  # the vocabulary of a model may be larger
        for token_id, piece in zip(known, tokenizer.convert_ids_to_tokens(known), strict=True)
    )
    special_ids = set(tokenizer.all_special_ids)
    special = tuple(n for n, i in enumerate(known) if i in special_ids)
    if words is None:
        words = _words(pieces, special)
    return TokenList(pieces, words, special=special, padding=tuple(padding))


def _words(pieces: Sequence[str], special: Sequence[int]) -> tuple[int | None, ...] | None:
    """Number the words by the marks of subword tokenizers; return None if there are no marks."""
    if any(piece.startswith(WORD_STARTS) for piece in pieces):
        starts = [piece.startswith(WORD_STARTS) for piece in pieces]
    elif any(piece.startswith(WORD_CONTINUATION) for piece in pieces):
        starts = [not piece.startswith(WORD_CONTINUATION) for piece in pieces]
    else:
        return None
    words: list[int | None] = []
    word = -1
    for n, starts_word in enumerate(starts):
        is_first = not words or words[-1] is None
        if n not in special and (starts_word or is_first):
            word += 1
        words.append(None if n in special else word)
    return tuple(words)


def _start_unknown(written: TokenList) -> TokenList:
    """Return what a decoder reads as it writes some tokens: a start token, then those before."""
    words = None if written.words is None else (None, *written.words[:-1])
    special = (0, *(n + 1 for n in written.special if n + 1 < len(written)))
    return TokenList((UNKNOWN, *written.pieces[:-1]), words, special, written.padding)
