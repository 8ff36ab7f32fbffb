"""Captured attention as a trace: one batch item, with token lists for both axes of each map."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.capture.records import CapturedAttention
from regard.errors import RegardError, wrong_type
from regard.trace import Array, AttentionMap, AttentionSummary, TokenList, Trace, to_array
from regard.trace.block_summary import TensorSummary, tile_edges

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


def build_trace(
    records: Records,
    source: Tokens,
    target: Tokens,
    written: Tokens,
    batch_index: int,
    title: str,
    model: str,
    gold: Sequence[tuple[int, int]] | None,
) -> Trace:
    """Build the trace of one batch item; tokens that are not given are numbered.

    `target` are the tokens that a decoder read, and `written` those that it wrote, which by default
    are the former shifted by one. See `Capture.trace`.

    Raises:
        RegardError: if a record has no such batch item.
    """
    records = [_without_windows(record, batch_index) for record in records]
    for record in records:
        if not 0 <= batch_index < record.batch_size:
            raise RegardError(
                f"batch_index must be from 0 to {record.batch_size - 1}, the batch of "
                f"{record.name}, but it is {batch_index}"
            )
    given = _name_given(records, source, target, written is not None)
    axes = [_choose_lists(record, records, given) for record in records]
    users_own = [tokens for tokens in (source, target) if isinstance(tokens, TokenList)]
    maps = [
        _build_map(record, batch_index, names, given.query_inputs)
        for record, names in zip(records, axes, strict=True)
    ]
    lists = _build_lists(records, axes, given.lists, users_own, batch_index)
    if given.query_inputs is not None:
        read = lists[given.query_inputs]
        lists["target"] = shift_to_written(read) if written is None else _to_list(written)
    return Trace(
        tokens=lists,
        maps=tuple(maps),
        title=title,
        model=model,
        gold=None if gold is None else tuple(gold),
    )


def _without_windows(record: CapturedAttention, batch_index: int) -> CapturedAttention:
    """Return the record of one item with its windows put back to their positions."""
    if record.num_windows == 1:
        return record
    weights = record.weights
    if weights is None:
        raise RegardError(
            f"the weights of {record.name} are summarized window by window, which cannot be put "
            "back to positions; watch with keep='all'"
        )
    batch_size = len(weights)
    whole = windows_to_positions(record, weights[min(batch_index, batch_size - 1)])
    return record.with_weights(whole[None].expand(batch_size, -1, -1, -1))


def windows_to_positions(record: CapturedAttention, item: Tensor) -> Tensor:
    """Put the windows of one item (window, head, query, key) back: (head, position, position)."""
    queries, keys, lengths = _window_positions(record, item)
    whole = item.new_zeros(item.shape[1], lengths[0] + 1, lengths[1] + 1)  # the last is padding
    for window, own_queries, own_keys in zip(item, queries, keys, strict=True):
        whole[:, own_queries[:, None], own_keys[None]] = window
    return whole[:, :-1, :-1]


def _window_positions(
    record: CapturedAttention, item: Tensor
) -> tuple[Tensor, Tensor, tuple[int, int]]:
    """Return positions (window, row) of queries and keys; window after window if unknown."""
    axes = record.axes
    if axes.query_positions is None or axes.key_positions is None or axes.num_positions is None:
        windows, _, *sizes = item.shape
        queries, keys = (torch.arange(windows * n, device="cpu").view(windows, n) for n in sizes)
        return queries, keys, (windows * sizes[0], windows * sizes[1])
    return axes.query_positions, axes.key_positions, axes.num_positions


def _name_given(records: Records, source: Tokens, target: Tokens, has_written: bool) -> GivenTokens:
    """Name the given lists "source" and "target", or "text" if there is one text only."""
    has_two_texts = target is not None or _has_cross(records)
    is_causal = any(record.kind == "causal" for record in records)  # not seen in a single step
    predicts_next = _has_cross(records) and (is_causal or has_written)
    decoder = "decoder_input" if target is not None and predicts_next else "target"
    names = ("source", decoder) if has_two_texts else ("text",)
    lists = {
        name: _to_list(tokens)
        for name, tokens in zip(names, (source, target), strict=False)
        if tokens is not None
    }
    return GivenTokens(lists, decoder)


def _to_list(tokens: TokenList | Sequence[str]) -> TokenList:
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


def _choose_lists(record: CapturedAttention, records: Records, given: GivenTokens) -> TokenLists:
    """Choose the token lists of a map; lists that are not given are matched by length."""
    if record.kind == "cross":
        names = TokenLists("target", "source")
    elif given.decoder in given.lists or _has_cross(records):
        name = "source" if _is_over_source(record, records) else given.decoder
        names = TokenLists(name, name)
    else:
        names = TokenLists("text", "text")
    counts = _num_tokens(record)
    sized = (
        _with_length(name, n, records, given.lists) for name, n in zip(names, counts, strict=True)
    )
    return TokenLists(*sized)


def _is_over_source(record: CapturedAttention, records: Records) -> bool:
    """Return whether a module's self-attention is over the source and not over the target."""
    if record.kind == "causal":
        return False
    crosses = [other for other in records if other.kind == "cross"]
    target_lengths = {_num_tokens(cross)[0] for cross in crosses}
    source_lengths = {_num_tokens(cross)[1] for cross in crosses}
    length = _num_tokens(record)[0]
    if (length in source_lengths) != (length in target_lengths):
        return length in source_lengths
    return "decoder" not in record.name.lower()


def _num_tokens(record: CapturedAttention) -> tuple[int, int]:
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
    usual = next((_num_tokens(x)[0] for x in records if x.kind != "cross"), length)
    is_only = {n for record in records for n in _num_tokens(record)} == {length}
    return name if is_only or length == usual else f"text of {length}"


def _build_lists(
    records: Records,
    axes: Sequence[TokenLists],
    given_lists: dict[str, TokenList],
    users_own: Sequence[TokenList],
    batch_index: int,
) -> dict[str, TokenList]:
    """Build all token lists; fully masked keys are marked as padding, unless the user did it."""
    lists = dict(given_lists)
    for record, names in zip(records, axes, strict=True):
        for name, count in zip(names, _num_tokens(record), strict=True):
            lists.setdefault(name, TokenList(tuple(str(n) for n in range(count))))
    for name, tokens in lists.items():
        over = [r for r, names in zip(records, axes, strict=True) if names.keys == name]
        if over and not any(tokens is own for own in users_own):
            lists[name] = replace(tokens, padding=_find_padding(over, len(tokens), batch_index))
    for record, names in zip(records, axes, strict=True):
        if record.extra_keys:
            extended = _extended_name(names.keys, record.extra_keys)
            lists[extended] = _extend_tokens(lists[names.keys], record.extra_keys)
    return lists


def _find_padding(records: Records, length: int, batch_index: int) -> tuple[int, ...]:
    """Return the keys that are masked for all queries of all records."""
    if any(_num_tokens(record)[1] != length for record in records):
        return ()  # Trace reports the wrong length
    masked = [
        record.fully_masked_keys[batch_index, :length].numpy()
        for record in records
        if record.fully_masked_keys is not None
    ]
    return tuple(np.flatnonzero(np.all(masked, axis=0)).tolist())


def _extended_name(name: str, extra_keys: int) -> str:
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


def _build_map(
    record: CapturedAttention, batch_index: int, names: TokenLists, query_inputs: str | None
) -> AttentionMap:
    weights, summary = record.weights, record.summary
    missing = record.offset if record.kind == "causal" else 0
    keys = names.keys
    if record.extra_keys:
        keys = _extended_name(keys, record.extra_keys)
    return AttentionMap(
        name=record.name,
        kind=record.kind,
        queries=names.queries,
        keys=keys,
        weights=None if weights is None else to_array(_prepend(weights[batch_index], missing, -2)),
        summary=None if summary is None else _to_summary(summary, batch_index, missing),
        heads=tuple(record.heads),
        call=record.call,
        call_site=record.call_site,
        value_norms=_value_norms(record, batch_index),
        query_inputs=query_inputs if record.kind == "cross" else None,
    )


def _prepend(rows: Tensor, count: int, axis: int) -> Tensor:
    """Prepend empty rows, for queries that came before the capture."""
    return pad(rows, (0, 0) * (-axis - 1) + (count, 0)) if count else rows


def _to_summary(summary: TensorSummary, batch_index: int, missing: int) -> AttentionSummary:
    item = TensorSummary(*(field[batch_index] for field in summary))
    return AttentionSummary(
        top_keys=_prepend(item.top_keys, missing, -2).numpy().astype(np.int64),
        top_weights=to_array(_prepend(item.top_weights, missing, -2)),
        remainder=to_array(_prepend(item.remainder, missing, -1)),
        tiles=to_array(_prepend_to_tiles(item.tiles, item.entropy.shape[-1], missing)),
        entropy=to_array(_prepend(item.entropy, missing, -1)),
        received=to_array(item.received),
        distance=to_array(_prepend(item.distance, missing, -1)),
    )


def _prepend_to_tiles(tiles: Tensor, queries: int, count: int) -> Tensor:
    """Prepend empty rows to what the tiles show; exact up to `MAX_TILES` rows in all."""
    if not count:
        return tiles
    rows = tiles.repeat_interleave(tile_edges(queries).diff(), dim=-2)
    cumulative = pad(rows, (0, 0, count + 1, 0)).cumsum(dim=-2)
    edges = tile_edges(count + queries)
    return cumulative[..., edges, :].diff(dim=-2) / edges.diff()[:, None]


def _value_norms(record: CapturedAttention, batch_index: int) -> Array | None:
    if record.value_norms is None:
        return None
    num_keys = _num_tokens(record)[1] + record.extra_keys
    return to_array(record.value_norms[batch_index, :, :num_keys])
