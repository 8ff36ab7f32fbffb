"""A run's training log, read incrementally by byte offset."""

import math
from contextlib import suppress
from typing import Any

from starlette.exceptions import HTTPException

from regard._support.reading import open_regular
from regard.errors import RegardError
from regard.runs import RunFolder, log

MAX_CHUNK_BYTES = 1 << 20  # read at a time


def read_log(folder: RunFolder, offset: int) -> dict[str, Any]:
    """Return the records from a byte offset on, and the offset of the next ones.

    An incomplete last line is left for the next call. A log shorter than the offset has been
    replaced and is read from its beginning.

    Raises:
        RegardError: if a line is damaged, or the log of a finished run is incomplete.
    """
    finished = folder.model_card.exists()  # before the log, whose last line is written earlier
    data, start = _read_chunk(folder, offset)
    end = data.rfind(b"\n") + 1
    records, run_id = [], folder.read_id()
    for line in data[:end].splitlines(keepends=True):
        try:
            records.append(log.parse_line(line, run_id))
        except ValueError as error:
            position = start + data.index(line)
            raise RegardError(f"{folder.log} is damaged at byte {position}: {error}") from error
    if len(data) == MAX_CHUNK_BYTES:  # more follows, unless a line is longer than that
        is_incomplete = end == 0
    else:
        is_incomplete = finished and (end < len(data) or (end > 0 and log.END not in records[-1]))
    if any(log.END in record for record in records[:-1]):
        raise RegardError(f"{folder.log} is damaged: lines follow its end")
    if is_incomplete:
        raise RegardError(f"{folder.log} is damaged: its end is missing")
    records = [_replace_non_finite(record) for record in records]
    return {"records": records, "next_offset": start + end, "finished": finished}


def last_step(folder: RunFolder) -> int:
    """Return the last training step that the log mentions, or 0; damaged lines are ignored."""
    start = max(folder.log.stat().st_size - MAX_CHUNK_BYTES, 0) if folder.log.exists() else 0
    data, _ = _read_chunk(folder, start)
    run_id, steps = folder.read_id(), [0]
    for line in data.splitlines(keepends=True):
        with suppress(ValueError):  # also the end of a line whose beginning was not read
            steps.append(log.parse_line(line, run_id)["step"])
    return max(steps)


def _read_chunk(folder: RunFolder, offset: int) -> tuple[bytes, int]:
    """Return a chunk of the log and the offset at which it begins."""
    try:
        with open_regular(folder.log) as file:
            start = offset if offset <= file.seek(0, 2) else 0
            file.seek(start)
            return file.read(MAX_CHUNK_BYTES), start
    except FileNotFoundError:  # training has not begun
        return b"", 0
    except OSError as error:
        raise HTTPException(404, f"the log cannot be read: {error.strerror}") from error


def _replace_non_finite(value: Any) -> Any:
    """Replace NaN and infinity, which JSON cannot represent, by None."""
    if isinstance(value, dict):
        return {name: _replace_non_finite(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_replace_non_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
