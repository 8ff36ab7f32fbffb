"""Tokens, looks, and the trace that holds both."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from regard.trace.checks import check_each, check_ndims, check_places, is_count, is_real, why
from regard.trace.quantize import Array, array

Kind = Literal["self", "causal", "cross"]
KINDS = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Tokens:
    """One side of attention, piece by piece."""

    pieces: tuple[str, ...]
    words: tuple[int | None, ...] | None = None
    special: tuple[int, ...] = ()
    padding: tuple[int, ...] = ()
    log_probabilities: tuple[float | None, ...] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.pieces, str) or not all(isinstance(p, str) for p in self.pieces):
            came = self.pieces if isinstance(self.pieces, str) else list(self.pieces)[:3]
            raise ValueError(
                f"pieces must be a list of texts, but {came!r} came; a batch must be given "
                "one sentence at a time, numbers as their texts"
            )
        for name in ("words", "log_probabilities"):
            given = getattr(self, name)
            if given is not None and len(given) != len(self.pieces):
                raise ValueError(
                    f"{name} must be one for each of {len(self.pieces)} pieces, not {len(given)}"
                )
        for place in (*self.special, *self.padding):
            if not is_count(place) or place >= len(self.pieces):
                raise ValueError(
                    f"special and padding must be positions from 0 to {len(self.pieces) - 1}, "
                    f"but one is {place!r}"
                )
        check_each("words", self.words, is_count, "numbers from 0 upwards")
        check_each("log_probabilities", self.log_probabilities, is_real, "numbers")

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def real(self) -> Array:
        """The positions that are not padding."""
        return np.array([n for n in range(len(self)) if n not in set(self.padding)], dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Reduced:
    """What is kept of weights that are too many: see the format for the axes."""

    top: Array
    top_weights: Array
    left_out: Array
    tiles: Array
    entropy: Array
    received: Array
    distance: Array


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Look:
    """Where the heads of one module looked in one call."""

    name: str
    kind: Kind
    queries: str
    keys: str
    weights: Array | None = field(default=None, repr=False)  # (head, query, key)
    reduced: Reduced | None = field(default=None, repr=False)
    heads: tuple[int, ...] = ()
    call: int = 0
    place: str = ""
    value_norms: Array | None = field(default=None, repr=False)  # (head, key)
    sizes: tuple[int, int, int] = field(init=False)  # kept heads, queries, keys

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, but it is {self.kind!r}")
        if (self.weights is None) == (self.reduced is None):
            raise ValueError(
                f"{self.name} must have weights or what they were reduced to, not both"
            )
        _set(self, "sizes", _sizes(self))
        _set(self, "heads", tuple(self.heads) or tuple(range(self.sizes[0])))
        _check_axes(self)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Trace:
    """Where a model looked: looks in order, and the tokens they go between, by name."""

    tokens: Mapping[str, Tokens]
    looks: tuple[Look, ...]
    title: str = ""
    model: str = ""
    gold: tuple[tuple[int, int], ...] | None = None  # (source word, target word)

    def __post_init__(self) -> None:
        for look in self.looks:
            for side, wanted in zip(("queries", "keys"), look.sizes[1:], strict=True):
                _check_tokens(look, side, wanted, self.tokens)
        if self.gold is not None:
            _check_gold(self.gold, self.tokens)

    def layers(self, kind: Kind, queries: str | None = None) -> tuple[Look, ...]:
        """Give the looks of one kind, in order; those of one token list, if it is named."""
        return tuple(
            look for look in self.looks if look.kind == kind and queries in (None, look.queries)
        )

    def save(self, path: Path | str) -> None:
        """Write the trace to a file, compressed if its name ends in .gz."""
        from regard.trace.file import save

        save(self, Path(path))

    def to_json(self) -> str:
        """Write the trace as JSON."""
        from regard.trace.file import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: str) -> "Trace":
        """Read a trace from JSON."""
        from regard.trace.file import from_json

        return from_json(text)


def translation(
    source: Tokens | Sequence[str],
    target: Tokens | Sequence[str],
    *,
    encoder: Iterable[Any] = (),
    decoder: Iterable[Any] = (),
    cross: Iterable[Any] = (),
    title: str = "",
    model: str = "",
    gold: Iterable[tuple[int, int]] | None = None,
) -> Trace:
    """Record a translator's attentions: for each layer, weights (head, query, key) of one sentence.

    Row i of `decoder` and `cross` must be where the target's piece i was read.
    """
    stacks = (
        ("encoder", "self", "source", "source", encoder),
        ("decoder", "causal", "target", "target", decoder),
        ("cross", "cross", "target", "source", cross),
    )
    looks = tuple(
        Look(name=f"{name}.{n}", kind=kind, queries=queries, keys=keys, weights=array(weights))  # type: ignore[arg-type]
        for name, kind, queries, keys, layers in stacks
        for n, weights in enumerate(layers)
    )
    tokens = {"source": _tokens(source), "target": _tokens(target)}
    links = None if gold is None else tuple(sorted((int(s), int(t)) for s, t in gold))
    return Trace(tokens=tokens, looks=looks, title=title, model=model, gold=links)


def _tokens(given: Tokens | Sequence[str]) -> Tokens:
    return given if isinstance(given, Tokens) else Tokens(tuple(given))


def _set(look: Look, name: str, value: object) -> None:
    object.__setattr__(look, name, value)  # the record is frozen for everyone else


def _sizes(look: Look) -> tuple[int, int, int]:
    if look.weights is None:
        assert look.reduced is not None, "one of both is there"
        check_ndims(look.name, look.reduced.top, look.reduced.tiles, look.reduced.received)
        heads, queries = look.reduced.top.shape[:2]
        return heads, queries, look.reduced.received.shape[-1]
    if look.weights.ndim != 3:
        raise ValueError(
            f"weights of {look.name} must be (head, query, key) of one sentence, but their shape "
            f"is {look.weights.shape}; weights[0] is the first sentence of a batch"
        )
    return look.weights.shape


def _check_axes(look: Look) -> None:
    heads, queries, keys = look.sizes
    wanted: dict[str, tuple[int, ...]] = {}
    given: dict[str, Array | None] = {"value_norms": look.value_norms}
    if look.reduced is not None:
        rows = ("left_out", "entropy", "distance")
        wanted = dict.fromkeys(rows, (heads, queries))
        wanted |= {"received": (heads, keys), "top_weights": look.reduced.top.shape}
        given |= {name: getattr(look.reduced, name) for name in wanted}
    wanted["value_norms"] = (heads, keys)
    for name, numbers in given.items():
        if numbers is not None and numbers.shape != wanted[name]:
            raise ValueError(
                f"{name} of {look.name} must be {wanted[name]}, but its shape is {numbers.shape}"
            )
    if look.reduced is not None:
        check_places(look.name, look.sizes, look.reduced.top, look.reduced.tiles)
    if len(look.heads) != heads or not all(map(is_count, look.heads)):
        came = str(look.heads)[:80]
        raise ValueError(f"heads of {look.name} must name {heads} by numbers, but they are {came}")


def _check_tokens(look: Look, side: str, wanted: int, tokens: Mapping[str, Tokens]) -> None:
    name = getattr(look, side)
    if name not in tokens:
        known = ", ".join(map(repr, tokens))
        raise ValueError(f"{side} of {look.name} are {name!r}, but the tokens are {known}")
    came = len(tokens[name])
    if came != wanted:
        raise ValueError(
            f"{look.name} has {wanted} {side}, but {came} {name} tokens came{why(wanted, came)}"
        )


def _check_gold(gold: Iterable[tuple[int, int]], tokens: Mapping[str, Tokens]) -> None:
    if not {"source", "target"} <= set(tokens):
        raise ValueError("gold links go from 'source' to 'target', and such tokens must be there")
    most = tuple(word_count(tokens[name]) for name in ("source", "target"))
    for link in gold:
        if not all(0 <= place < count for place, count in zip(link, most, strict=True)):
            raise ValueError(
                f"gold links must be (source word, target word) within {most[0]} and {most[1]} "
                f"words, but one is {tuple(link)}"
            )


def word_count(tokens: Tokens) -> int:
    """Count the words; without a mapping, each piece is one."""
    if tokens.words is None:
        return len(tokens)
    return max((word + 1 for word in tokens.words if word is not None), default=0)
