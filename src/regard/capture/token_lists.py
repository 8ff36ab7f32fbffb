"""The token lists on both axes of each map: those that were given, or numbers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from regard.capture.records import CapturedAttention
from regard.errors import wrong_type
from regard.trace import TokenList

Tokens = TokenList | Sequence[str] | None
Records = Sequence[CapturedAttention]

UNKNOWN = "…"  # the piece that stands for a token of which it is not known that it was written


class TokenLists(NamedTuple):
    """The names of the token lists on both axes of a map."""

    queries: str
    keys: str


class GivenTokens(NamedTuple):
    """The tokens that a user gave, and what the decoder's are called.

    Of a decoder that predicts the next token, the tokens given are those it read,
    "decoder_input"; the rows of its cross-attention are named by the tokens it wrote, "target".
    """

    lists: dict[str, TokenList]
    decoder: str = "target"

    @property
    def query_inputs(self) -> str | None:
        """Name of the tokens that the decoder read, if they differ from those it wrote."""
        return None if self.decoder == "target" else self.decoder


def name_given(records: Records, source: Tokens, target: Tokens, has_written: bool) -> GivenTokens:
    """Name the given lists "source" and "target", or "text" if there is one text only."""
    has_two_texts = target is not None or _has_cross(records)
    is_causal = any(record.kind == "causal" for record in records)  # not seen in a single step
    predicts_next = _has_cross(records) and (is_causal or has_written)
    decoder = "decoder_input" if target is not None and predicts_next else "target"
    names = ("source", decoder) if has_two_texts else ("text",)
    lists = {
        name: to_list(tokens)
        for name, tokens in zip(names, (source, target), strict=False)
        if tokens is not None
    }
    return GivenTokens(lists, decoder)


def to_list(tokens: TokenList | Sequence[str]) -> TokenList:
    """Return tokens as a token list."""
    if isinstance(tokens, TokenList):
        return tokens
    if isinstance(tokens, str):
        raise wrong_type("tokens", "a list of strings, such as text.split()", tokens)
    return TokenList(tuple(tokens))


def shift_to_written(read: TokenList) -> TokenList:
    """Return the tokens that a decoder wrote, from those that it read: each step writes the next.

    What the last step wrote was never read, so it is unknown: a special piece "…". Word indices
    stay those of the tokens read, so that links to them hold.

    Example:
        >>> shift_to_written(TokenList(("<s>", "chat", "dort"), special=(0,))).pieces
        ('chat', 'dort', '…')
    """
    length, padding = len(read), set(read.padding)
    unknown = [n for n in range(length) if n + 1 == length or n + 1 in padding]
    following = [None if n in unknown else n + 1 for n in range(length)]
    words = tuple(range(length)) if read.words is None else read.words
    log_probs = read.log_probs
    return TokenList(
        tuple(UNKNOWN if n is None else read.pieces[n] for n in following),
        tuple(None if n is None else words[n] for n in following),
        tuple(sorted({*unknown, *(n - 1 for n in read.special if n)} - padding)),
        read.padding,
        None
        if log_probs is None
        else tuple(None if n is None else log_probs[n] for n in following),
    )


def _has_cross(records: Records) -> bool:
    return any(record.kind == "cross" for record in records)


def choose_lists(record: CapturedAttention, records: Records, given: GivenTokens) -> TokenLists:
    """Choose the token lists of a map; lists that are not given are matched by length."""
    if record.kind == "cross":
        names = TokenLists("target", "source")
    elif given.decoder in given.lists or _has_cross(records):
        name = "source" if _is_over_source(record, records) else given.decoder
        names = TokenLists(name, name)
    else:
        names = TokenLists("text", "text")
    counts = num_tokens(record)
    sized = (
        _with_length(name, n, records, given.lists) for name, n in zip(names, counts, strict=True)
    )
    return TokenLists(*sized)


def _is_over_source(record: CapturedAttention, records: Records) -> bool:
    """Return whether a module's self-attention is over the source and not over the target."""
    if record.kind == "causal":
        return False
    crosses = [other for other in records if other.kind == "cross"]
    target_lengths = {num_tokens(cross)[0] for cross in crosses}
    source_lengths = {num_tokens(cross)[1] for cross in crosses}
    length = num_tokens(record)[0]
    if (length in source_lengths) != (length in target_lengths):
        return length in source_lengths
    return "decoder" not in record.name.lower()


def num_tokens(record: CapturedAttention) -> tuple[int, int]:
    """Return the lengths of both axes in the trace.

    In causal attention, queries before the first recorded one get empty rows. Keys that a module
    appends are not counted: they are no positions of a text.
    """
    keys = record.num_keys - record.extra_keys
    if record.kind == "causal":
        end = record.offset + record.num_queries
        return end, min(keys, end)
    return record.num_queries, keys


def _with_length(
    name: str, length: int, records: Records, given_lists: dict[str, TokenList]
) -> str:
    """Add the length to the name "text" where there are texts of several lengths."""
    if name in given_lists or name != "text":
        return name
    usual = next((num_tokens(x)[0] for x in records if x.kind != "cross"), length)
    is_only = {n for record in records for n in num_tokens(record)} == {length}
    return name if is_only or length == usual else f"text of {length}"


def build_lists(
    records: Records,
    axes: Sequence[TokenLists],
    given_lists: dict[str, TokenList],
    users_own: Sequence[TokenList],
    batch_index: int,
) -> dict[str, TokenList]:
    """Build all token lists; fully masked keys are marked as padding, unless the user did it."""
    lists = dict(given_lists)
    for record, names in zip(records, axes, strict=True):
        for name, count in zip(names, num_tokens(record), strict=True):
            lists.setdefault(name, TokenList(tuple(str(n) for n in range(count))))
    for name, tokens in lists.items():
        over = [r for r, names in zip(records, axes, strict=True) if names.keys == name]
        if over and not any(tokens is own for own in users_own):
            lists[name] = replace(tokens, padding=_find_padding(over, len(tokens), batch_index))
    for record, names in zip(records, axes, strict=True):
        if record.extra_keys:
            extended = extended_name(names.keys, record.extra_keys)
            lists[extended] = _extend_tokens(lists[names.keys], record.extra_keys)
    return lists


def _find_padding(records: Records, length: int, batch_index: int) -> tuple[int, ...]:
    """Return the keys that are masked for all queries of all records."""
    if any(num_tokens(record)[1] != length for record in records):
        return ()  # Trace reports the wrong length
    masked = [
        record.fully_masked_keys[batch_index, :length].numpy()
        for record in records
        if record.fully_masked_keys is not None
    ]
    return tuple(np.flatnonzero(np.all(masked, axis=0)).tolist())


def extended_name(name: str, extra_keys: int) -> str:
    """Return the name of a list with the keys that a module appends."""
    return f"{name} + {extra_keys}"


def _extend_tokens(tokens: TokenList, extra_keys: int) -> TokenList:
    """Append special tokens "+1", "+2", … for the keys that a module appends."""
    length, missing = len(tokens), [None] * extra_keys
    words, log_probs = tokens.words, tokens.log_probs
    return TokenList(
        (*tokens.pieces, *(f"+{n + 1}" for n in range(extra_keys))),
        None if words is None else (*words, *missing),
        (*tokens.special, *range(length, length + extra_keys)),
        tokens.padding,
        None if log_probs is None else (*log_probs, *missing),
    )
