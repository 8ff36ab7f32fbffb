"""A trace told from what was seen: one sentence of the batch, and the names of its tokens."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from torch import Tensor
from torch.nn.functional import pad

from regard.capture.record import CapturedAttention
from regard.capture.summary import Rows
from regard.errors import RegardError
from regard.trace import Array, AttentionMap, AttentionSummary, TokenList, Trace, to_array

Given = TokenList | Sequence[str] | None


class Sides(NamedTuple):
    """Which tokens look at which."""

    queries: str
    keys: str


def told(
    looks: Sequence[CapturedAttention],
    source: Given,
    target: Given,
    sentence: int,
    title: str,
    model: str,
    gold: Sequence[tuple[int, int]] | None,
) -> Trace:
    """Write looks as a trace, with numbers for the tokens that are not given."""
    given = _named(looks, source, target)
    for look in looks:
        if not 0 <= sentence < look.sizes[0]:
            raise RegardError(
                f"batch_index must be from 0 to {look.sizes[0] - 1}, as {look.name} saw no more, "
                f"but it is {sentence}"
            )
    sides = [_sides(look, looks, given) for look in looks]
    own = [tokens for tokens in (source, target) if isinstance(tokens, TokenList)]
    lists = _lists(looks, sides, given, own, sentence)
    records = [_record(look, sentence, s) for look, s in zip(looks, sides, strict=True)]
    links = None if gold is None else tuple(gold)
    return Trace(tokens=lists, maps=tuple(records), title=title, model=model, gold=links)


def _named(
    looks: Sequence[CapturedAttention], source: Given, target: Given
) -> dict[str, TokenList]:
    two = target is not None or _crosses(looks)
    names = ("source", "target") if two else ("text",)
    return {
        name: tokens if isinstance(tokens, TokenList) else TokenList(tuple(tokens))
        for name, tokens in zip(names, (source, target), strict=False)
        if tokens is not None
    }


def _crosses(looks: Sequence[CapturedAttention]) -> bool:
    return any(look.kind == "cross" for look in looks)


def _lists(
    looks: Sequence[CapturedAttention],
    sides: Sequence[Sides],
    given: dict[str, TokenList],
    own: Sequence[TokenList],
    sentence: int,
) -> dict[str, TokenList]:
    """Name all tokens, and mark as padding what masks hide, unless the user marked it."""
    lists = dict(given)
    for look, pair in zip(looks, sides, strict=True):
        for side, count in zip(pair, _counts(look), strict=True):
            lists.setdefault(side, TokenList(tuple(str(n) for n in range(count))))
    for name, tokens in lists.items():
        at = [look for look, pair in zip(looks, sides, strict=True) if pair.keys == name]
        if at and not any(tokens is one for one in own):
            lists[name] = replace(tokens, padding=_padding(at, len(tokens), sentence))
    for look, pair in zip(looks, sides, strict=True):
        if look.added:
            lists[_longer(pair.keys, look.added)] = _with_added(lists[pair.keys], look.added)
    return lists


def _padding(looks: Sequence[CapturedAttention], count: int, sentence: int) -> tuple[int, ...]:
    """Find the keys that masks hide from every query of every look."""
    if any(_counts(look)[1] != count for look in looks):
        return ()  # the trace will say that the list is too short or too long
    hidden = [look.hidden[sentence, :count] for look in looks if look.hidden is not None]
    return tuple(np.flatnonzero(np.all([row.numpy() for row in hidden], axis=0)).tolist())


def _longer(name: str, added: int) -> str:
    return f"{name} and {added} more"


def _with_added(tokens: TokenList, added: int) -> TokenList:
    """Name the keys that a module puts behind those of a text."""
    count, more = len(tokens), [None] * added
    words, likely = tokens.words, tokens.log_probs
    return TokenList(
        (*tokens.pieces, *(f"+{n + 1}" for n in range(added))),
        None if words is None else (*words, *more),
        (*tokens.special, *range(count, count + added)),
        tokens.padding,
        None if likely is None else (*likely, *more),
    )


def _sides(
    look: CapturedAttention, looks: Sequence[CapturedAttention], given: dict[str, TokenList]
) -> Sides:
    """Name both sides; lists that were not given are told apart by their lengths."""
    two = "target" in given or _crosses(looks)
    if look.kind == "cross":
        sides = Sides("target", "source")
    elif not two:
        sides = Sides("text", "text")
    else:
        sides = Sides(*[_side(look, looks)] * 2)
    sizes = _counts(look)
    return Sides(*(_sized(s, n, looks, given) for s, n in zip(sides, sizes, strict=True)))


def _side(look: CapturedAttention, looks: Sequence[CapturedAttention]) -> str:
    """Tell whether a text that looks at itself is the one that is read or the one written."""
    if look.kind == "causal":
        return "target"
    crosses = [other for other in looks if other.kind == "cross"]
    read = {_counts(other)[1] for other in crosses}
    written = {_counts(other)[0] for other in crosses}
    count = _counts(look)[0]
    if (count in read) != (count in written):
        return "source" if count in read else "target"
    return "target" if "decoder" in look.name.lower() else "source"


def _counts(look: CapturedAttention) -> tuple[int, int]:
    """Count queries and keys as they are told: those before the first query are told, too.

    Keys that a module adds are not counted: they are no positions of a text.
    """
    _, queries, keys = look.sizes
    keys -= look.added
    if look.kind == "causal":
        return look.offset + queries, min(keys, look.offset + queries)
    return queries, keys


def _sized(
    side: str, count: int, looks: Sequence[CapturedAttention], given: dict[str, TokenList]
) -> str:
    if side in given:
        return side
    usual = next((_counts(x)[0] for x in looks if x.kind != "cross"), count)
    alone = {n for look in looks for n in _counts(look)} == {count}
    if side == "text" and not alone and count != usual:
        return f"text of {count}"
    return side


def _record(look: CapturedAttention, sentence: int, sides: Sides) -> AttentionMap:
    weights, rows = look.weights, look.rows
    before = look.offset if look.kind == "causal" else 0
    return AttentionMap(
        name=look.name,
        kind=look.kind,
        queries=sides.queries,
        keys=_longer(sides.keys, look.added) if look.added else sides.keys,
        weights=None if weights is None else to_array(_shifted(weights[sentence], before, -2)),
        summary=None if rows is None else _reduced(rows, sentence, before),
        heads=tuple(look.heads),
        call=look.call,
        call_site=look.place,
        value_norms=_norms(look, sentence),
    )


def _shifted(rows: Tensor, before: int, axis: int) -> Tensor:
    """Put empty rows where nobody watched."""
    return pad(rows, (0, 0) * (-axis - 1) + (before, 0)) if before else rows


def _reduced(rows: Rows, sentence: int, before: int) -> AttentionSummary:
    own = Rows(*(numbers[sentence] for numbers in rows))
    return AttentionSummary(
        top_keys=_shifted(own.top_keys, before, -2).numpy().astype(np.int64),
        top_weights=to_array(_shifted(own.top_weights, before, -2)),
        remainder=to_array(_shifted(own.remainder, before, -1)),
        tiles=to_array(own.tiles),
        entropy=to_array(_shifted(own.entropy, before, -1)),
        received=to_array(own.received),
        distance=to_array(_shifted(own.distance, before, -1)),
    )


def _norms(look: CapturedAttention, sentence: int) -> Array | None:
    if look.norms is None:
        return None
    return to_array(look.norms[sentence, :, : _counts(look)[1] + look.added])
