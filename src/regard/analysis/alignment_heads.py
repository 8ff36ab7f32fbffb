"""Alignments from cross-attention: which head aligns best, and the links that it makes.

A target word is aligned by the row that writes it, which is how pictures name rows, too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from regard.analysis.alignment import Link, align, alignment_error_rate
from regard.errors import RegardError
from regard.trace import Array, AttentionMap, Rows, TokenList, Trace, merge_subwords, to_array


class AlignmentHead(NamedTuple):
    """The head of the best alignment, and the criterion that chose it."""

    layer: int
    head: int
    criterion: str
    value: float
    values: Array  # (layer, head): the criterion's value for every head


def best_alignment_head(
    traces: Sequence[Trace],
    gold: Sequence[Iterable[Link]] | None = None,
    *,
    rows: Rows = "output",
) -> AlignmentHead:
    """Find the head that aligns best over some traces of translations.

    With gold links it is the head with the lowest alignment error rate over all traces together.
    Without, it is the head with the highest agreement between the two directions: the share of
    target words that are the best target of their best source word.

    Args:
        traces: traces with cross-attention from "target" to "source", of one model.
        gold: for each trace, its links (source word, target word).
        rows: see `word_level_cross_attention`.

    Returns:
        The head, by layer and position among the kept heads, and the values of all heads.

    Raises:
        RegardError: if there is no trace, one without cross-attention, or gold links for another
            number of traces; or if they differ in layers or heads.

    Example:
        >>> from regard.trace import build_translation_trace
        >>> straight, crossed = [[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]
        >>> trace = build_translation_trace("ab", "xy", cross=[[crossed, straight]])
        >>> best = best_alignment_head([trace], gold=[[(0, 0), (1, 1)]])
        >>> best.layer, best.head, best.criterion, best.value
        (0, 1, 'lowest alignment error rate', 0.0)
    """
    stacks = [word_level_cross_attention(trace, rows=rows)[0] for trace in traces]
    if not stacks:
        raise RegardError("traces must not be empty")
    shapes = dict.fromkeys(stack.shape[:2] for stack in stacks)
    if len(shapes) > 1:
        raise RegardError(
            "traces must be of one model, but their layers and heads of cross-attention are "
            f"{' and '.join(map(str, shapes))}"
        )
    return _best_head(stacks, gold)


def _best_head(
    stacks: Sequence[Array], gold: Sequence[Iterable[Link]] | None = None
) -> AlignmentHead:
    """Find the best head over the weights (layer, head, target, source) of some sentences."""
    if gold is None:
        agreements = sum(_count_agreements(stack) for stack in stacks)
        words = sum(stack.shape[2] for stack in stacks)
        values = np.asarray(agreements / max(1, words))
        best = int(values.argmax())
        criterion = "highest agreement"
    else:
        values = _error_rates(stacks, [set(links) for links in gold])
        best = int(values.argmin())
        criterion = "lowest alignment error rate"
    layer, head = divmod(best, values.shape[1])
    return AlignmentHead(layer, head, criterion, float(values[layer, head]), values)


def extract_alignment(
    trace: Trace,
    layer: int | None = None,
    head: int | None = None,
    symmetric: bool = True,
    *,
    rows: Rows = "output",
) -> set[Link]:
    """Extract the word alignment of a translation from its cross-attention.

    Start, end and padding are left out on both sides.

    Args:
        trace: a trace with cross-attention from "target" to "source".
        layer: layer of cross-attention; by default the best one.
        head: position among the kept heads; by default the best one.
        symmetric: also link each source word to its best target word, and `symmetrise`.
        rows: see `word_level_cross_attention`.

    Returns:
        Links (source word, target word), by the word indices of the trace.

    Raises:
        RegardError: if the trace has no cross-attention, or no such layer or head.

    Example:
        >>> from regard.trace import build_translation_trace
        >>> weights = [[0.1, 0.8, 0.1], [0.2, 0.1, 0.7]]
        >>> trace = build_translation_trace(
        ...     ["the", "white", "cat"], ["blanc", "chat"], cross=[[weights]]
        ... )
        >>> sorted(extract_alignment(trace, symmetric=False))
        [(1, 0), (2, 1)]
    """
    weights, source, target = word_level_cross_attention(trace, rows=rows)
    for name, index, count in zip(("layer", "head"), (layer, head), weights.shape, strict=False):
        if index is not None and not -count <= index < count:
            raise RegardError(
                f"{name} must be from 0 to {count - 1} in cross-attention, but it is {index}"
            )
    if layer is not None:
        weights = weights[[layer]]
    if head is not None:
        weights = weights[:, [head]]
    is_chosen = weights.shape[:2] == (1, 1)
    best = (0, 0) if is_chosen else _best_head([weights])[:2]
    links = align(weights[best], symmetric=symmetric)
    return {(source[s], target[t]) for s, t in links}


def word_level_cross_attention(
    trace: Trace, *, rows: Rows = "output"
) -> tuple[Array, list[int], list[int]]:
    """Return cross-attention between words, without special tokens and padding.

    Args:
        trace: a trace with cross-attention from "target" to "source".
        rows: the row of a target word: "output" is the step that writes it; "input" is the next
            one, which reads it. Without a token list of what the decoder read, both are the
            same.

    Returns:
        Weights (layer, head, target, source), and the word indices of source and target.

    Raises:
        RegardError: if the trace has no cross-attention, or its layers have other numbers of heads.

    Example:
        >>> from regard.trace import build_translation_trace
        >>> source = TokenList(("the", "ca", "t"), words=(0, 1, 1))
        >>> trace = build_translation_trace(source, ["chat"], cross=[[[[0.25, 0.5, 0.25]]]])
        >>> weights, sources, targets = word_level_cross_attention(trace)
        >>> weights.tolist(), sources, targets
        ([[[[0.25, 0.75]]]], [0, 1], [0])
    """
    words = merge_subwords(_group_rows_by_input(trace) if rows == "input" else trace)
    layers = [m for m in words.maps if m.kind == "cross" and m.keys == "source"]
    if not layers:
        raise RegardError("an alignment needs cross-attention, but the trace has none")
    targets, target_words = _text_words(words.tokens[layers[0].queries])
    sources, source_words = _text_words(words.tokens["source"])
    weights = _stack_layers(layers)
    return weights[:, :, targets][..., sources], source_words, target_words


def _text_words(tokens: TokenList) -> tuple[list[int], list[int]]:
    """Return the positions of a token list that are words, and their word indices."""
    words = tokens.words or tuple(range(tokens.num_words))
    skipped = {*tokens.special, *tokens.padding}
    pairs = [(n, w) for n, w in enumerate(words) if w is not None and n not in skipped]
    return [position for position, _ in pairs], [word for _, word in pairs]


def _group_rows_by_input(trace: Trace) -> Trace:
    """Name the rows of cross-attention by the tokens read there, if those are known."""
    maps = tuple(
        replace(m, queries=m.query_inputs or m.queries, query_inputs=None) for m in trace.maps
    )
    return replace(trace, maps=maps)


def _stack_layers(layers: Sequence[AttentionMap]) -> Array:
    """Return the weights (layer, head, target, source) of layers that have as many heads."""
    counts = {layer.name: layer.shape[0] for layer in layers}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise RegardError(
            f"layers of cross-attention must have the same number of heads, but have: {listed}"
        )
    return np.stack([to_array(layer.weights) for layer in layers])


def _count_agreements(stack: Array) -> Array:
    """Count, for each layer and head, target words that are the best of their best source word."""
    if not stack.size:
        return np.zeros(stack.shape[:2], dtype=np.int64)
    best_source, best_target = stack.argmax(-1), stack.argmax(-2)
    returned = np.take_along_axis(best_target, best_source, axis=-1)
    agrees = (returned == np.arange(stack.shape[2])) & stack.any(-1)
    return np.asarray(agrees.sum(-1))


def _error_rates(stacks: Sequence[Array], gold: Sequence[set[Link]]) -> Array:
    if len(stacks) != len(gold):
        raise RegardError(
            f"gold must have links for each of {len(stacks)} traces, but it has {len(gold)}"
        )
    sure = [(n, *link) for n, links in enumerate(gold) for link in links]
    layers, heads = stacks[0].shape[:2]
    rates = np.zeros((layers, heads))
    for layer, head in np.ndindex(layers, heads):
        predicted = [
            (n, *link) for n, stack in enumerate(stacks) for link in align(stack[layer, head])
        ]
        rates[layer, head] = alignment_error_rate(predicted, sure)
    return rates
