"""The token lists on both axes of each map: those that were given, or numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from torch import Tensor

from regard.capture.records import CapturedAttention
from regard.errors import RegardError, wrong_type
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
    is_pair = _has_cross(records) and not _are_stages(records)
    has_two_texts = target is not None or is_pair
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
    if callable(tokens):
        raise TypeError(
            f"tokens must be a list of strings, but it is of type {type(tokens).__name__}; name a "
            "tokenizer and the inputs: trace(tokenizer=tokenizer, inputs=inputs)"
        )
    if isinstance(tokens, Mapping | Tensor):
        raise wrong_type("tokens", "a list of strings", tokens)
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


def choose_lists(records: Records, given: GivenTokens) -> list[TokenLists]:
    """Choose the token lists of every map; lists that are not given are matched by length.

    Raises:
        RegardError: if given tokens fit some of the maps only, or not the keys before them.
    """
    axes = [_sides(record, records, given) for record in records]
    lengths: dict[str, list[int]] = {}
    for record, names in zip(records, axes, strict=True):
        for name, length in zip(names, num_tokens(record), strict=True):
            lengths.setdefault(name, []).append(length)
    for name, tokens in given.lists.items():
        _check_earlier_keys(name, len(tokens), records, axes)
        if len(set(lengths.get(name, ()))) > 1:
            _check_fit(name, len(tokens), records, axes)
    return [
        TokenLists(*(_with_length(x, n, lengths[x]) for x, n in zip(names, counts, strict=True)))
        for names, counts in zip(axes, map(num_tokens, records), strict=True)
    ]


def _sides(record: CapturedAttention, records: Records, given: GivenTokens) -> TokenLists:
    """Return which text the queries and the keys of a map are from."""
    if _are_stages(records) and given.decoder not in given.lists:
        return TokenLists("text", "text")
    if record.kind == "cross":
        return TokenLists("target", "source")
    if given.decoder in given.lists or _has_cross(records):
        name = "source" if _is_over_source(record, records) else given.decoder
        return TokenLists(name, name)
    return TokenLists("text", "text")


def _are_stages(records: Records) -> bool:
    """Return whether cross-attention is between stages of one input, which differ in length.

    The queries of one stage are then the keys of another, as in a pyramid of downsampled images or
    where latent vectors read an input and write an output.
    """
    sizes = [num_tokens(record) for record in records if record.kind == "cross"]
    if any(queries == keys for queries, keys in sizes):
        return False
    return not {queries for queries, _ in sizes}.isdisjoint(keys for _, keys in sizes)


def _with_length(name: str, length: int, lengths: Sequence[int]) -> str:
    """Add the length to a name, unless it is the first of this name."""
    return name if length == lengths[0] else f"{name} of {length}"


def _check_earlier_keys(
    name: str, count: int, records: Records, axes: Sequence[TokenLists]
) -> None:
    """Raise a `RegardError` if the keys before the first query are missing in a given list."""
    for record, names in zip(records, axes, strict=True):
        length, _ = num_tokens(record)
        is_missing = record.kind == "causal" and 0 < record.offset == length - count
        if is_missing and names.queries == name:
            raise RegardError(
                f"{record.name} has {record.offset} keys before its first query, from a cache or "
                f"learned, but there are {name} tokens for the {count} queries only; put "
                f"{record.offset} tokens before them"
            )


def _check_fit(name: str, count: int, records: Records, axes: Sequence[TokenLists]) -> None:
    """Raise a `RegardError` that lists the maps of several lengths that a given list fits."""
    fitting, others = [], []
    for record, names in zip(records, axes, strict=True):
        own = zip(("keys", "queries"), names[::-1], num_tokens(record)[::-1], strict=True)
        sizes = {n: axis for axis, list_name, n in own if list_name == name}
        wrong = [f"{n} {axis}" for n, axis in sizes.items() if n != count]
        if wrong:
            others.append(f"{record.name} ({wrong[-1]})")
        elif sizes:
            fitting.append(record.name)
    fits = f"fit {_shortened(fitting)}, but not" if fitting else "do not fit"
    raise RegardError(
        f"{count} {name} tokens {fits} {_shortened(others)}; select layers with modules=, or omit "
        "the tokens to number all positions"
    )


def _shortened(names: Sequence[str]) -> str:
    rest = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return ", ".join(names[:2]) + rest


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
