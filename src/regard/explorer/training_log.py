"""A run's training log, read incrementally by byte offset."""

import json
import math
from typing import Any

from starlette.exceptions import HTTPException

from regard.runs import RunFolder

MAX_CHUNK_BYTES = 1 << 20  # read at a time


def read_log(folder: RunFolder, offset: int) -> dict[str, Any]:
    """Return the records from a byte offset on, and the offset of the next ones.

    An incomplete last line is left for the next call. A log shorter than the offset has been
    replaced and is read from its beginning.
    """
    data, start = _read_chunk(folder, offset)
    end = data.rfind(b"\n") + 1
    lines = data[:end].splitlines()
    records = [record for line in lines if (record := _parse_record(line)) is not None]
    return {"records": records, "next_offset": start + end, "finished": folder.model_card.exists()}


def last_step(folder: RunFolder) -> int:
    """Return the last training step that the log mentions, or 0."""
    start = max(folder.log.stat().st_size - MAX_CHUNK_BYTES, 0) if folder.log.exists() else 0
    steps = [record.get("step") for record in read_log(folder, start)["records"]]
    return max((step for step in steps if isinstance(step, int)), default=0)


def _read_chunk(folder: RunFolder, offset: int) -> tuple[bytes, int]:
    """Return a chunk of the log and the offset at which it begins."""
    try:
        with folder.log.open("rb") as file:
            start = offset if offset <= file.seek(0, 2) else 0
            file.seek(start)
            return file.read(MAX_CHUNK_BYTES), start
    except FileNotFoundError:  # training has not begun
        return b"", 0
    except OSError as error:
        raise HTTPException(404, f"the log cannot be read: {error.strerror}") from error


def _parse_record(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a line, or None if it is none."""
    try:
        record = _replace_non_finite(json.loads(line))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _replace_non_finite(value: Any) -> Any:
    """Replace NaN and infinity, which JSON cannot represent, by None."""
    if isinstance(value, dict):
        return {name: _replace_non_finite(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_replace_non_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
