"""How a training went, or goes: its log, from where a reader has come to."""

import json
import math
from typing import Any

from regard.explorer.errors import Refused
from regard.runs import RunFolder

CHUNK = 1 << 20  # bytes of a log that are read at a time


def log(folder: RunFolder, offset: int) -> dict[str, Any]:
    """Read the complete lines of a log from a byte offset on.

    A log that is shorter than it was is another one, and read from its beginning.
    """
    data, start = _read(folder, offset)
    end = data.rfind(b"\n") + 1
    lines = data[:end].splitlines()
    records = [record for line in lines if (record := _record(line)) is not None]
    return {"records": records, "next_offset": start + end, "finished": folder.model_card.exists()}


def last_step(folder: RunFolder) -> int:
    """Tell how far a training has come, by its log."""
    start = max(folder.log.stat().st_size - CHUNK, 0) if folder.log.exists() else 0
    steps = [record.get("step") for record in log(folder, start)["records"]]
    return max((step for step in steps if isinstance(step, int)), default=0)


def _read(folder: RunFolder, offset: int) -> tuple[bytes, int]:
    try:
        with folder.log.open("rb") as file:
            start = offset if offset <= file.seek(0, 2) else 0
            file.seek(start)
            return file.read(CHUNK), start
    except FileNotFoundError:  # it has not begun
        return b"", 0
    except OSError as problem:
        raise Refused(404, f"the log cannot be read: {problem.strerror}") from problem


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = _sayable(json.loads(line))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _sayable(value: Any) -> Any:
    """Give numbers that JSON cannot say as None."""
    if isinstance(value, dict):
        return {name: _sayable(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_sayable(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
