"""The table that a printed capture is."""

from collections.abc import Iterable

from regard._support.text import format_table
from regard.capture.records import CapturedAttention

_HEADER = ("module", "call site", "kind", "heads", "queries × keys", "calls", "storage")


def record_table(records: Iterable[CapturedAttention]) -> str:
    """Return a table of records."""
    return format_table([_HEADER, *_table_rows(records)])


def _table_rows(records: Iterable[CapturedAttention]) -> list[tuple[str, ...]]:
    """Return one row per module, line, kind and size; calls that share one are counted."""
    steps: dict[tuple[str, ...], list[int]] = {}
    for record in records:
        size = f"{record.num_queries} × {record.num_keys}"
        if record.num_windows > 1:
            size += f" in {record.num_windows} windows"
        about = (record.name, record.call_site, record.kind, str(record.num_heads), size)
        steps.setdefault((*about, record.storage + _notes(record)), []).append(record.steps)
    return [(*about, _format_calls(counts), storage) for (*about, storage), counts in steps.items()]


def _format_calls(steps: list[int]) -> str:
    """Format the number of calls, with that of their steps if there were several."""
    total = sum(steps)
    return str(len(steps)) if total == len(steps) else f"{len(steps)} ({total} steps)"


def _notes(record: CapturedAttention) -> str:
    """Return what is unusual about weights: normaliser, what was applied, uncertain axes."""
    notes = [] if record.normaliser == "softmax" else [f"normaliser: {record.normaliser}"]
    notes += [f"applied: {', '.join(record.applied)}"] if record.applied else []
    notes += [f"uncertain axis: {', '.join(record.uncertain)}"] if record.uncertain else []
    if record.is_partial:
        sums = "" if record.applied else f": rows sum to {_format_sums(record)}"
        notes.append(f"some keys of the softmax missing{sums}")
    if record.num_windows == 1 and record.axes.needs_positions:
        notes.append("rows differ by head; a trace puts them at their positions")
    is_placed = record.num_windows == 1 or record.axes.positions is not None
    notes += [] if is_placed else ["positions of windows unknown"]
    notes += ["no vectors"] if record.keep_vectors and record.vectors is None else []
    return "".join(f"; {note}" for note in notes)


def _format_sums(record: CapturedAttention) -> str:
    """Return the range of the sums of rows, without those of masked queries."""
    sums = record.row_sums
    low, high = (f"{x:.2f}" for x in sums[sums > 0].aminmax())
    return low if low == high else f"{low}–{high}"
