"""One attention map and the token lists of its axes: the parts of a trace."""

from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from regard.errors import RegardError
from regard.trace import value_checks
from regard.trace.quantization import Array

Kind = Literal["self", "causal", "cross"]
KINDS = get_args(Kind)
"""The kinds of attention: self-attention, causal self-attention and cross-attention."""


@dataclass(frozen=True, slots=True)
class TokenList:
    """One axis of an attention map: the tokens of a text, and what is known about each.

    Args:
        pieces: the tokens as strings, as the tokenizer spells them.
        words: index of the word that each piece belongs to, None for pieces of no word; without
            it, every piece is a word.
        special: positions of pieces that are not text, such as start and end tokens.
        padding: positions that only fill a batch.
        log_probs: log-probability of each piece, None where there is none.

    Raises:
        RegardError: if these do not fit together.

    Example:
        >>> tokens = TokenList(("▁look", "ing", "</s>"), words=(0, 0, None), special=(2,))
        >>> len(tokens), tokens.num_words
        (3, 1)
    """

    pieces: tuple[str, ...]
    words: tuple[int | None, ...] | None = None
    special: tuple[int, ...] = ()
    padding: tuple[int, ...] = ()
    log_probs: tuple[float | None, ...] | None = None

    def __post_init__(self) -> None:
        value_checks.check_pieces(self.pieces)
        for name in ("words", "log_probs"):
            value_checks.check_length(name, getattr(self, name), len(self.pieces))
        value_checks.check_positions((*self.special, *self.padding), len(self.pieces))
        is_index, is_number = value_checks.is_index, value_checks.is_number
        value_checks.check_items("words", self.words, is_index, "integers from 0 upwards")
        value_checks.check_items("log_probs", self.log_probs, is_number, "numbers")

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def non_padding(self) -> Array:
        """Positions that are not padding."""
        padding = set(self.padding)
        return np.array([n for n in range(len(self)) if n not in padding], dtype=np.int64)

    @property
    def num_words(self) -> int:
        """Number of words; without a mapping to words, the number of pieces."""
        if self.words is None:
            return len(self)
        return max((word + 1 for word in self.words if word is not None), default=0)


@dataclass(frozen=True, slots=True, eq=False)
class AttentionSummary:
    """What is kept of attention weights that are too large to keep in full.

    The axes are head, query, key, the rank among a row's heaviest keys, and the rows and columns
    of a coarse picture; the package's docstring has the details.
    """

    top_keys: Array  # (head, query, rank)
    top_weights: Array  # (head, query, rank)
    remainder: Array  # (head, query)
    tiles: Array  # (head, row, column)
    entropy: Array  # (head, query)
    received: Array  # (head, key)
    distance: Array  # (head, query)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AttentionMap:
    """The attention weights of one module in one call, of one batch item.

    Args:
        name: the module's name, such as `decoder.layers.0.cross`.
        kind: "self", "causal" (self-attention of a decoder) or "cross".
        queries: name of the token list that the rows stand for. In a decoder's cross-attention
            these are the tokens written at each step.
        keys: name of the token list that the columns stand for.
        weights: (head, query, key), each row summing to 1, or to 0 if all keys are masked.
        summary: given instead of `weights` where those are too large.
        heads: the model's indices of the heads that were kept; all of them by default.
        call: how many times the module had been called before.
        call_site: source line of the call, such as `model.py:41`, or "".
        value_norms: (head, key), norm of each value vector at the time of the call.
        query_inputs: name of the token list that the decoder reads at the same steps, which is
            the other way to name the rows; None if there is one way only.

    Raises:
        RegardError: if there is not exactly one of `weights` and `summary`, or a shape is wrong.

    Example:
        >>> weights = np.full((2, 3, 4), 0.25)
        >>> AttentionMap(name="x", kind="cross", queries="b", keys="a", weights=weights).shape
        (2, 3, 4)
    """

    name: str
    kind: Kind
    queries: str
    keys: str
    weights: Array | None = field(default=None, repr=False)
    summary: AttentionSummary | None = field(default=None, repr=False)
    heads: tuple[int, ...] = ()
    call: int = 0
    call_site: str = ""
    value_norms: Array | None = field(default=None, repr=False)
    query_inputs: str | None = None
    shape: tuple[int, int, int] = field(init=False)  # kept heads, queries, keys

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise RegardError(f"kind must be one of {', '.join(KINDS)}, but it is {self.kind!r}")
        if (self.weights is None) == (self.summary is None):
            raise RegardError(f"{self.name} must have either weights or a summary of them")
        for axis in ("queries", "keys"):
            value_checks.check_list_name(self.name, axis, getattr(self, axis))
        if self.query_inputs is not None:
            value_checks.check_list_name(self.name, "query_inputs", self.query_inputs)
        _set(self, "shape", _shape(self))
        _set(self, "heads", tuple(self.heads) or tuple(range(self.shape[0])))
        _check_arrays(self)
        value_checks.check_heads(self.name, self.heads, self.shape[0])


def _set(attention_map: AttentionMap, name: str, value: object) -> None:
    object.__setattr__(attention_map, name, value)  # the dataclass is frozen


def _shape(attention_map: AttentionMap) -> tuple[int, int, int]:
    name, weights, summary = attention_map.name, attention_map.weights, attention_map.summary
    if weights is None:
        assert summary is not None, "checked before"
        value_checks.check_ndims(name, summary.top_keys, summary.tiles, summary.received)
        heads, queries = summary.top_keys.shape[:2]
        return heads, queries, summary.received.shape[-1]
    if weights.ndim != 3:
        raise RegardError(
            f"weights of {name} must be (head, query, key) of one batch item, but their shape is "
            f"{weights.shape}; weights[0] would be the first item of a batch"
        )
    return weights.shape


def _check_arrays(attention_map: AttentionMap) -> None:
    """Raise unless all arrays of a map have the shapes that the others imply."""
    heads, queries, keys = attention_map.shape
    name, summary = attention_map.name, attention_map.summary
    value_checks.check_shape(name, "value_norms", attention_map.value_norms, (heads, keys))
    if summary is not None:
        for part in ("remainder", "entropy", "distance"):
            value_checks.check_shape(name, part, getattr(summary, part), (heads, queries))
        value_checks.check_shape(name, "received", summary.received, (heads, keys))
        ranks = summary.top_keys.shape
        value_checks.check_shape(name, "top_weights", summary.top_weights, ranks)
        value_checks.check_top_keys(name, summary.top_keys, keys)
        value_checks.check_tiles(name, summary.tiles, attention_map.shape)
