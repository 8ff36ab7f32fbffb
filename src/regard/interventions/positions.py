"""Positions in their texts of the queries and keys of attention calls.

A call of a generation step, or of a chunk of queries, knows its own rows alone. Which positions
these are follows from the calls of the same module before it.
"""

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from regard._support.torch_modes import in_functorch
from regard.capture.calls import CapturedCall
from regard.capture.layout import CallAxes, RowRange

MAX_COMPARED_KEYS = 1024  # of a cache, to tell a sliding window from one that was cut
MAX_SEQUENCES = 32  # of one module: layers that share it have a cache each


class Positions(NamedTuple):
    """Positions of the first query and of the first key of a call.

    They mean nothing where `are_shifted`: keys of a step were inserted before some of the last one.
    """

    query: int
    key: int = 0
    are_shifted: bool = False


@dataclass(eq=False)
class _Latest:
    """The latest call of a module, in one sequence of calls."""

    kind: str
    positions: Positions
    end: int  # position after its last query
    keys: Tensor | None  # (key, width), the first keys of one head
    storage: int | None  # address of its keys
    span: RowRange | None  # of the rows that its queries are
    held: Tensor | None  # its keys, which keeps their address from being used again
    num_keys: int
    last_key: Tensor | None

    def shorten(self) -> None:
        """Keep the first key alone, which a call of the same sequence is recognised by."""
        self.keys = None if self.keys is None else self.keys[:1].clone()
        self.held = self.storage = None


class PositionTracker:
    """Finds positions from the calls of one thread, in their order."""

    def __init__(self) -> None:
        self._calls: dict[str, list[_Latest]] = {}  # the latest is last
        self._decoder = (0, 0)  # first position and number of queries of the latest self-attention

    def locate(self, name: str, call: CapturedCall, kind: str, axes: CallAxes) -> Positions:
        """Return the positions of a module's next call."""
        calls, queries = self._calls.setdefault(name, []), call.shape[2]
        latest = _preceding(calls, call)
        if latest is not None and _continues(latest, call):
            kind = "causal"
        if kind == "causal":
            positions = _in_cache(latest, call)
        elif latest is not None and _is_next_chunk(latest, call, axes):
            positions = Positions(latest.end)
        else:
            positions = Positions(self._of_decoder(latest, call) if kind == "cross" else 0)
        if latest is not None and _inserts_keys(latest, call):
            positions = positions._replace(are_shifted=True)
        if kind != "cross":
            self._decoder = positions.query, queries
        if latest is not None and positions.query:
            calls.remove(latest)  # which this one continues
        elif calls:
            calls[-1].shorten()
            del calls[: -MAX_SEQUENCES + 1]
        calls.append(
            _Latest(
                kind,
                positions,
                end=positions.query + queries,
                keys=_first_keys(call),
                storage=_storage(call),
                span=axes.span,
                held=call.raw_keys if kind == "cross" and queries == 1 else None,
                num_keys=call.shape[3],
                last_key=_last_key(call),
            )
        )
        return positions

    def _of_decoder(self, latest: _Latest | None, call: CapturedCall) -> int:
        """Return the position of cross-attention: of the self-attention before it, or by counting.

        A recurrent decoder has none, and reads the same keys step by step.
        """
        offset, num_queries = self._decoder
        if call.shape[2] == num_queries:
            return offset
        is_step = latest is not None and latest.held is not None and call.shape[2] == 1
        return latest.end if is_step and latest and _storage(call) == latest.storage else 0


def _preceding(calls: list[_Latest], call: CapturedCall) -> _Latest | None:
    """Return the call that a call continues, by their first key if several may be; else the latest.

    A module that several layers share, or that runs several times in a pass, has a cache for each.
    """
    if len(calls) < 2 or not call.offset:
        return calls[-1] if calls else None
    first = _first_keys(call, 1)
    for known in reversed(calls):
        is_next = known.kind != "cross" and known.positions.key + call.offset == known.end
        keys = None if known.keys is None else known.keys[:1]
        if is_next and keys is not None and first is not None and keys.equal(first):
            return known
    return calls[-1]


def _continues(latest: _Latest, call: CapturedCall) -> bool:
    """Return whether the keys that a call sees are those of a cache before and its own.

    Its queries and keys do not show that if a cache holds what keys are projected from.
    """
    is_step = call.shape[2] < call.shape[3] and call.offset == latest.end
    return is_step and latest.kind != "cross"


def _in_cache(latest: _Latest | None, call: CapturedCall) -> Positions:
    """Return the positions of causal attention, also over a cache that has dropped its first keys.

    Its keys then begin with a later one than before. A cache may be cut at its end, too, as in
    assisted generation, so that they need not follow the latest query.
    """
    if latest is None or not 0 < call.offset < latest.end:
        return Positions(call.offset)
    dropped = latest.end - call.offset
    before, now = latest.keys, _first_keys(call)
    if before is not None and now is not None:
        old, first = now[: call.offset], latest.positions.key
        shifts = [dropped - first, *range(len(before))]  # repeated tokens may have several
        matching = (n for n in shifts if n >= 0 and _begins_with(before[n:], old))
        dropped = first + next(matching, dropped - first)
    return Positions(dropped + call.offset, dropped)


def _begins_with(keys: Tensor, others: Tensor) -> bool:
    """Return whether keys are the same as others, as far as both go."""
    count = min(len(keys), len(others))
    return count > 0 and bool(keys[0].equal(others[0])) and keys[:count].equal(others[:count])


def _is_next_chunk(latest: _Latest, call: CapturedCall, axes: CallAxes) -> bool:
    """Return whether a call has the next queries of the same rows, over the same keys."""
    before, after = latest.span, axes.span
    if before is None or latest.storage is None or _storage(call) != latest.storage:
        return False
    if after is None:  # a last chunk of one row has no label
        return call.shape[2] == 1 and latest.end + 1 == call.shape[3]
    return after.origin is before.origin and after.start == before.start + before.size


def _inserts_keys(latest: _Latest, call: CapturedCall) -> bool:
    """Return whether a call has the keys of the latest one, with its own before the last of them.

    As in one softmax over the text that is written and, after it, an encoded text.
    """
    before, now = latest.keys, _first_keys(call)
    is_step = call.shape[3] == latest.num_keys + call.shape[2]
    if not is_step or before is None or now is None or latest.last_key is None:
        return False
    last = _last_key(call)
    is_same_end = last is not None and last.equal(latest.last_key)
    return is_same_end and before[0].equal(now[0]) and not _begins_with(now, before)


def _last_key(call: CapturedCall) -> Tensor | None:
    keys = call.raw_keys
    if keys is None or not keys.shape[0]:
        return None
    return keys[0, 0, -1].detach().clone()


def _storage(call: CapturedCall) -> int | None:
    if call.raw_keys is None or in_functorch():  # where tensors have no storage
        return None
    return call.raw_keys.untyped_storage().data_ptr()


def _first_keys(call: CapturedCall, count: int = MAX_COMPARED_KEYS) -> Tensor | None:
    keys = call.raw_keys
    if keys is None or not keys.shape[0]:
        return None
    return keys[0, 0, :count].detach().clone()
