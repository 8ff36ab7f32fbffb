"""Traces in files: JSON that holds no code, refused with a sentence where it cannot be read."""

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.trace.numbers import Array, pack, unpack
from regard.trace.record import Look, Reduced, Tokens, Trace

FORMAT, VERSION = "regard trace", 1

# the coarse picture has 256 shades; all else is kept to more than four decimals
_REDUCED = {
    "top": 32,
    "top_weights": 16,
    "left_out": 16,
    "tiles": 8,
    "entropy": 16,
    "received": 16,
    "distance": 16,
}


def save(trace: Trace, path: Path) -> None:
    """Write a trace to a file, compressed if its name ends in .gz."""
    data = to_json(trace).encode("utf-8")
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)  # the same trace makes the same file
    try:
        path.write_bytes(data)
    except OSError as error:
        raise RegardError(f"cannot write {path}: {error.strerror}") from error


def load_trace(path: Path | str) -> Trace:
    """Read a trace that `save` wrote."""
    path = Path(path)
    text = text_of(path)
    try:
        return from_json(text)
    except RegardError as error:
        raise RegardError(f"{path}: {error}") from error


def text_of(path: Path) -> str:
    """Give the JSON of a file, unpacked if it is compressed."""
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":  # compressed, whatever its name
            data = gzip.decompress(data)
        return data.decode("utf-8")
    except (EOFError, zlib.error, UnicodeDecodeError) as error:
        raise RegardError(
            f"{path} is not a trace, or a part of one: it cannot be unpacked ({error})"
        ) from error
    except OSError as error:
        raise RegardError(f"cannot read {path}: {error.strerror or error}") from error


def to_json(trace: Trace) -> str:
    """Write a trace as JSON, in the form that `regard.trace` describes."""
    record: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    record |= {"title": trace.title, "model": trace.model}
    record["tokens"] = {name: _tokens_out(tokens) for name, tokens in trace.tokens.items()}
    if trace.gold is not None:
        record["gold"] = [list(link) for link in trace.gold]
    record["looks"] = [_look_out(look) for look in trace.looks]
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def from_json(text: str) -> Trace:
    """Read a trace from JSON; whatever is wrong with it becomes one sentence."""
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        raise RegardError(
            f"a trace must be JSON, but it breaks off or errs at character {error.pos} of "
            f"{len(text)}: {error.msg}"
        ) from error
    except (ValueError, RecursionError) as error:  # a number or a nesting without end
        raise RegardError(f"a trace must be JSON that can be read, but: {error}") from error
    _check_version(record)
    try:
        return Trace(
            tokens={name: _tokens_in(tokens) for name, tokens in record["tokens"].items()},
            looks=tuple(_look_in(look) for look in record["looks"]),
            title=str(record.get("title", "")),
            model=str(record.get("model", "")),
            gold=_pairs(record.get("gold")),
        )
    except KeyError as error:
        raise RegardError(f"the trace lacks {error.args[0]!r}") from error
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise RegardError(f"the trace cannot be read: {error}") from error


def _check_version(record: Any) -> None:
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise RegardError(f'this is JSON, but not a trace: a trace says "format": "{FORMAT}"')
    if record.get("version") != VERSION:
        raise RegardError(
            f"the trace has version {record.get('version')!r}, but this regard reads version "
            f"{VERSION}; make it anew, or install the regard that wrote it"
        )


def _tokens_out(tokens: Tokens) -> dict[str, Any]:
    record: dict[str, Any] = {"pieces": list(tokens.pieces)}
    if tokens.words is not None:
        record["words"] = list(tokens.words)
    record |= {"special": list(tokens.special), "padding": list(tokens.padding)}
    if tokens.log_probabilities is not None:
        rounded = [None if p is None else round(p, 4) for p in tokens.log_probabilities]
        record["log_probabilities"] = rounded
    return record


def _tokens_in(record: dict[str, Any]) -> Tokens:
    words, log_probabilities = record.get("words"), record.get("log_probabilities")
    return Tokens(
        _texts(record["pieces"]),
        None if words is None else tuple(words),
        tuple(record.get("special", ())),
        tuple(record.get("padding", ())),
        None if log_probabilities is None else tuple(log_probabilities),
    )


def _texts(pieces: Any) -> tuple[str, ...]:
    if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
        raise ValueError(f"pieces must be a list of texts, but {str(pieces)[:40]!r} came")
    return tuple(pieces)


def _look_out(look: Look) -> dict[str, Any]:
    names = ("name", "kind", "queries", "keys", "call", "place")
    record: dict[str, Any] = {name: getattr(look, name) for name in names}
    record |= {"heads": list(look.heads), "sizes": list(look.sizes)}
    if look.weights is not None:
        record["weights"] = pack(look.weights)
    if look.reduced is not None:
        record["reduced"] = {
            name: pack(getattr(look.reduced, name), bits) for name, bits in _REDUCED.items()
        }
    if look.value_norms is not None:
        record["value_norms"] = pack(look.value_norms)
    return record


def _look_in(record: dict[str, Any]) -> Look:
    reduced = record.get("reduced")
    return Look(
        name=str(record["name"]),
        kind=record["kind"],
        queries=record["queries"],
        keys=record["keys"],
        weights=_numbers(record, "weights"),
        reduced=None if reduced is None else _reduced_in(reduced),
        heads=tuple(record.get("heads", ())),
        call=int(record.get("call", 0)),
        place=str(record.get("place", "")),
        value_norms=_numbers(record, "value_norms"),
    )


def _reduced_in(record: dict[str, Any]) -> Reduced:
    return Reduced(**{name: unpack(record[name], name, name == "top") for name in _REDUCED})


def _numbers(record: dict[str, Any], name: str) -> Array | None:
    return unpack(record[name], name) if name in record else None


def _pairs(links: Any) -> tuple[tuple[int, int], ...] | None:
    return None if links is None else tuple((int(source), int(target)) for source, target in links)
