"""Traces as JSON, and in files, optionally compressed; malformed input gives one-line errors."""

import gzip
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard._support import files
from regard._support.reading import GZIP_MAGIC, decompress, read_bounded
from regard._support.strict_json import parse_json
from regard._support.text import shorten
from regard.errors import RegardError
from regard.trace.attention_map import AttentionMap, AttentionSummary, TokenList
from regard.trace.image import PatchImage, image_from_dict, image_to_dict
from regard.trace.quantization import Array, dequantize, quantize
from regard.trace.trace import Trace
from regard.trace.value_checks import is_index

FORMAT, FORMAT_VERSION = "regard trace", 4

# Whatever malformed input can raise while a record is built from it.
_MALFORMED = (ValueError, TypeError, AttributeError, OverflowError, RecursionError, IndexError)

# Bits of each part of a summary. Tiles are only drawn, in 256 shades; 16 bits keep the others to
# more than four decimals. Keys are integers, which stay exact.
_SUMMARY_BITS = {
    "top_keys": 32,
    "top_weights": 16,
    "remainder": 16,
    "tiles": 8,
    "entropy": 16,
    "received": 16,
    "distance": 16,
}

MAX_TRACE_BYTES = 2**30  # of a file, and of what it decompresses to


class _PartError(RegardError):
    """An error that already names the part of the trace it is in."""


def to_dict(trace: Trace) -> dict[str, Any]:
    """Return a trace as a JSON-serializable dict, in the format that `regard.trace` describes."""
    record: dict[str, Any] = {"format": FORMAT, "version": FORMAT_VERSION}
    record |= {"title": _string(trace.title, "title"), "model": _string(trace.model, "model")}
    record["tokens"] = {}
    for name, tokens in trace.tokens.items():
        with _naming(f"tokens {name!r}", "written"):
            record["tokens"][_string(name, "name")] = _tokens_to_dict(tokens)
    if trace.gold is not None:
        record["gold"] = [list(link) for link in trace.gold]
    if trace.images:
        record["images"] = {n: image_to_dict(image) for n, image in trace.images.items()}
    record["maps"] = []
    for attention_map in trace.maps:
        with _naming(f"map {attention_map.name!r}", "written"):
            record["maps"].append(_map_to_dict(attention_map))
    return record


def from_dict(record: Any) -> Trace:
    """Build a trace from a dict, or raise RegardError with one line that says what is wrong."""
    _check_version(record)
    tokens, maps = {}, []
    with _naming("top level"):
        for name, item in record["tokens"].items():
            with _naming(f"tokens {name!r}"):
                tokens[_string(name, "name")] = _tokens_from_dict(item)
        for index, item in enumerate(record["maps"]):
            with _naming(f"map {index}"):
                maps.append(_map_from_dict(item))
        return Trace(
            tokens=tokens,
            maps=tuple(maps),
            title=_string(record.get("title", ""), "title"),
            model=_string(record.get("model", ""), "model"),
            gold=_links(record.get("gold")),
            images=_images_from_dict(record.get("images")),
        )


def to_json(trace: Trace) -> str:
    """Return a trace as compact JSON."""
    return json.dumps(to_dict(trace), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def from_json(text: str) -> Trace:
    """Build a trace from JSON, or raise RegardError with one line that says what is wrong."""
    # save_trace writes lone surrogates, which some tokenizers produce, as escape sequences
    return from_dict(parse_json(text, "a trace", surrogates=True))


@contextmanager
def _naming(part: str, action: str = "read") -> Iterator[None]:
    """Turn errors into RegardError that names the part of the trace they are in."""
    try:
        yield
    except _PartError:
        raise
    except KeyError as error:
        raise _PartError(f"the trace lacks {error.args[0]!r} in {part}") from error
    except _MALFORMED as error:
        raise _PartError(f"the trace cannot be {action}: {part}: {error}") from error


def _check_version(record: Any) -> None:
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise RegardError(f'this is JSON, but not a trace: a trace has "format": "{FORMAT}"')
    if record.get("version") != FORMAT_VERSION:
        raise RegardError(
            f"the trace has format version {record.get('version')!r}, but this regard reads "
            f"version {FORMAT_VERSION}; record it again, or install the regard that wrote it"
        )


def _images_from_dict(record: Any) -> dict[str, PatchImage]:
    if not isinstance(record or {}, dict):
        raise RegardError(f"images must be by token list, but they are {shorten(record)}")
    images = {}
    for name, item in (record or {}).items():
        with _naming(f"image of {name!r}"):
            images[name] = image_from_dict(item)
    return images


def _tokens_to_dict(tokens: TokenList) -> dict[str, Any]:
    record: dict[str, Any] = {"pieces": [_string(piece, "pieces") for piece in tokens.pieces]}
    if tokens.words is not None:
        record["words"] = list(tokens.words)
    record |= {"special": list(tokens.special), "padding": list(tokens.padding)}
    if tokens.log_probs is not None:
        _check_finite(tokens.log_probs)
        record["log_probs"] = [None if p is None else round(float(p), 4) for p in tokens.log_probs]
    return record


def _tokens_from_dict(record: dict[str, Any]) -> TokenList:
    pieces, words, log_probs = record["pieces"], record.get("words"), record.get("log_probs")
    if not isinstance(pieces, list):
        raise RegardError(f"pieces must be a list of strings, but it is {str(pieces)[:40]!r}")
    _check_finite(log_probs)
    return TokenList(
        tuple(pieces),
        None if words is None else tuple(words),
        tuple(record.get("special", ())),
        tuple(record.get("padding", ())),
        None if log_probs is None else tuple(log_probs),
    )


def _check_finite(log_probs: Any) -> None:
    """Raise for what JSON cannot represent; TokenList checks the rest."""
    for log_prob in log_probs or ():
        if isinstance(log_prob, float) and not math.isfinite(log_prob):
            raise RegardError(f"log_probs must be finite or null, but one is {log_prob}")


def _string(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise RegardError(f"{name} must be a string, but it is {str(value)[:40]!r}")
    return value


def _map_to_dict(attention_map: AttentionMap) -> dict[str, Any]:
    record: dict[str, Any] = {
        "name": _string(attention_map.name, "name"),
        "kind": attention_map.kind,
        "queries": attention_map.queries,
        "keys": attention_map.keys,
        "call": attention_map.call,
        "call_site": _string(attention_map.call_site, "call_site"),
        "heads": list(attention_map.heads),
        "shape": list(attention_map.shape),
    }
    if attention_map.query_inputs is not None:
        record["query_inputs"] = attention_map.query_inputs
    if attention_map.weights is not None:
        record["weights"] = quantize(attention_map.weights)
    if attention_map.summary is not None:
        record["summary"] = {
            part: quantize(getattr(attention_map.summary, part), bits)
            for part, bits in _SUMMARY_BITS.items()
        }
    if attention_map.value_norms is not None:
        record["value_norms"] = quantize(attention_map.value_norms)
    return record


def _map_from_dict(record: dict[str, Any]) -> AttentionMap:
    weights = _optional_array(record, "weights")
    summary = _summary_from_dict(record["summary"]) if record.get("summary") is not None else None
    return AttentionMap(
        name=_string(record["name"], "name"),
        kind=record["kind"],
        queries=record["queries"],
        keys=record["keys"],
        weights=weights,
        summary=summary,
        heads=_heads(record, weights if summary is None else summary.top_keys),
        call=_index(record.get("call", 0), "call"),
        call_site=_string(record.get("call_site", ""), "call_site"),
        value_norms=_optional_array(record, "value_norms"),
        query_inputs=record.get("query_inputs"),
    )


def _heads(record: dict[str, Any], values: Array | None) -> tuple[int, ...]:
    """Return the listed heads; a map without values must list them, as its shape is a claim."""
    heads = tuple(record.get("heads", ()))
    if values is not None and not heads and not values.size and values.shape[:1] != (0,):
        raise RegardError(f"a map of shape {values.shape} must list its heads, but it does not")
    return heads


def _index(value: Any, name: str) -> int:
    if not is_index(value):
        raise RegardError(f"{name} must be an integer from 0 upwards, but it is {shorten(value)}")
    return int(value)


def _summary_from_dict(record: dict[str, Any]) -> AttentionSummary:
    return AttentionSummary(
        **{name: dequantize(record[name], name, name == "top_keys") for name in _SUMMARY_BITS}
    )


def _optional_array(record: dict[str, Any], name: str) -> Array | None:
    return dequantize(record[name], name) if name in record else None


def _links(links: Any) -> tuple[tuple[int, int], ...] | None:
    if links is None:
        return None
    return tuple((_index(source, "gold"), _index(target, "gold")) for source, target in links)


def save_trace(trace: Trace, path: Path) -> None:
    """Write a trace to a file, compressed with gzip if the name ends in .gz."""
    try:
        # A lone surrogate becomes an escape sequence, which is JSON for the same character.
        data = trace.to_json().encode("utf-8", errors="backslashreplace")
    except RegardError as error:
        raise RegardError(f"cannot write {path}: {error}") from error
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)  # equal traces give equal files
    files.write_file(path, data, make_folder=False)


def load_trace(path: Path | str) -> Trace:
    """Read a trace from a file that `Trace.save` wrote.

    Args:
        path: the file.

    Returns:
        The trace.

    Raises:
        RegardError: if the file cannot be read, is no trace, or has another format version.

    Example:
        >>> load_trace("missing.json")
        Traceback (most recent call last):
            ...
        regard.errors.RegardError: cannot read missing.json: No such file or directory
    """
    path = Path(path)
    text = read_trace_text(path)
    try:
        return Trace.from_json(text)
    except RegardError as error:
        raise RegardError(f"{path}: {error}") from error


def read_trace_text(path: Path) -> str:
    """Return the JSON text of a file, decompressed if need be.

    Raises:
        RegardError: if it is not a regular file of UTF-8 text, or decompresses to more than a
            multiple of its size.
    """
    try:
        data = read_bounded(path, MAX_TRACE_BYTES)
    except OSError as error:
        raise RegardError(f"cannot read {path}: {error.strerror or error}") from error
    try:
        if data.startswith(GZIP_MAGIC):  # whatever the file is called
            data = decompress(data, path, MAX_TRACE_BYTES)
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RegardError(f"{path} is not a trace: it cannot be decoded ({error})") from error
