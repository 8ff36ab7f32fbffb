"""Captured attention as a trace: one batch item, with token lists for both axes of each map."""

from collections.abc import Sequence
from warnings import warn

import numpy as np
from torch import Tensor
from torch.nn.functional import pad

from regard.capture.records import CapturedAttention
from regard.capture.token_lists import (
    Records,
    TokenLists,
    Tokens,
    build_lists,
    choose_lists,
    extended_name,
    name_given,
    num_tokens,
    shift_to_written,
    to_list,
)
from regard.capture.windows import UnknownPositionsError, without_windows
from regard.errors import RegardError
from regard.trace import Array, AttentionMap, AttentionSummary, TokenList, Trace, to_array
from regard.trace.block_summary import TensorSummary, tile_edges


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
        RegardError: if a record has no such batch item, or no record can be shown.
    """
    records = _at_positions(records, batch_index)
    records = [_with_learned_keys_last(record) for record in records]
    for record in records:
        if not 0 <= batch_index < record.batch_size:
            raise RegardError(
                f"batch_index must be from 0 to {record.batch_size - 1}, the batch of "
                f"{record.name}, but it is {batch_index}"
            )
    given = name_given(records, source, target, written is not None)
    axes = choose_lists(records, given)
    users_own = [tokens for tokens in (source, target) if isinstance(tokens, TokenList)]
    maps = [
        _build_map(record, batch_index, names, given.query_inputs)
        for record, names in zip(records, axes, strict=True)
    ]
    lists = build_lists(records, axes, given.lists, users_own, batch_index)
    if given.query_inputs is not None:
        read = lists[given.query_inputs]
        lists["target"] = shift_to_written(read) if written is None else to_list(written)
    return Trace(
        tokens=lists,
        maps=tuple(maps),
        title=title,
        model=model,
        gold=None if gold is None else tuple(gold),
    )


def _at_positions(records: Records, batch_index: int) -> list[CapturedAttention]:
    """Return the records with windows put back to positions; warn of those where they cannot be."""
    shown, left_out = list[CapturedAttention](), dict[str, RegardError]()
    for record in records:
        try:
            shown.append(without_windows(record, batch_index))
        except UnknownPositionsError as error:
            left_out.setdefault(record.name, error)
    if not left_out:
        return shown
    reason = next(iter(left_out.values()))
    if not shown:
        raise reason
    message = f"the trace leaves out {', '.join(left_out)}: {reason}"
    warn(message, stacklevel=4)  # in code that calls `Capture.trace`
    return shown


def _with_learned_keys_last(record: CapturedAttention) -> CapturedAttention:
    """Return the record with learned keys after those of the text, as pictures have them."""
    if not record.leading_keys:
        return record
    weights, norms, number = record.weights, record.value_norms, record.leading_keys
    if weights is None:
        raise RegardError(
            f"the weights of {record.name} are summarized together with {number} learned keys "
            "before those of the text; watch with keep='all'"
        )
    return record.with_weights(
        weights.roll(-number, -1),
        value_norms=None if norms is None else norms.roll(-number, -1),
        extra_keys=number + record.extra_keys,
    )


def _build_map(
    record: CapturedAttention, batch_index: int, names: TokenLists, query_inputs: str | None
) -> AttentionMap:
    weights, summary = record.weights, record.summary
    missing = record.offset if record.kind == "causal" else 0
    keys = names.keys
    if record.extra_keys:
        keys = extended_name(keys, record.extra_keys)
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
        query_inputs=query_inputs if names.queries == "target" else None,
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
    num_keys = num_tokens(record)[1] + record.extra_keys
    return to_array(record.value_norms[batch_index, :, :num_keys])
