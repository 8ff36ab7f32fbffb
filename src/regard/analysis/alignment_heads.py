"""Alignments from cross-attention: which head aligns best, and the links that it makes."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from regard.analysis.alignment import Link, align, alignment_error_rate
from regard.errors import RegardError
from regard.trace import Array, Trace, merge_subwords, to_array

Row = Literal["input", "output"]
"""The row of a word in a decoder's attention: its input step, or the step that predicts it."""


class BestHead(NamedTuple):
    """The head of the best alignment, and the criterion's value for every head."""

    layer: int
    head: int
    criterion: str
    value: float
    values: Array  # (layer, head)


class AlignmentHead(NamedTuple):
    """The head and row of the best alignment, and the criterion that chose them."""

    layer: int
    head: int
    row: Row
    criterion: str
    value: float


def best_head_from_weights(
    sentences: Iterable[Any],
    gold: Iterable[Iterable[Link]] | None = None,
    *,
    shift: bool = False,
) -> BestHead:
    """Find the head of the best alignment over one or more sentences.

    With gold links it is the head with the lowest alignment error rate over all sentences
    together. Without, it is the head with the highest agreement between the two directions: the
    share of target words that are the best target of their best source word.

    Args:
        sentences: for each, weights (layer, head, target, source), or one (head, target, source)
            per layer.
        gold: for each sentence, its links.
        shift: see `align`.

    Raises:
        RegardError: if there is no sentence, or gold links for another number of sentences.
    """
    stacks = [_stack_layers(layers) for layers in sentences]
    if not stacks:
        raise RegardError("sentences must not be empty")
    if gold is None:
        agreements = sum(_count_agreements(s[:, :, 1:] if shift else s) for s in stacks)
        words = sum(stack.shape[2] - shift for stack in stacks)
        values = np.asarray(agreements / max(1, words))
        best = int(values.argmax())
        criterion = "highest agreement"
    else:
        values = _error_rates(stacks, [set(links) for links in gold], shift)
        best = int(values.argmin())
        criterion = "lowest alignment error rate"
    layer, head = divmod(best, values.shape[1])
    return BestHead(layer, head, criterion, float(values[layer, head]), values)


def best_alignment_head(
    traces: Sequence[Trace], gold: Sequence[Iterable[Link]] | None = None
) -> AlignmentHead:
    """Find the head, and the row of a word, that align best over some traces of translations.

    The criterion is that of `best_head_from_weights`. Which row is better depends on the depth of
    the model: where the last layers must find the next word, it is the row that predicts it.

    Args:
        traces: traces with cross-attention from "target" to "source".
        gold: for each trace, its links (source word, target word).
    """
    rows: tuple[Row, ...] = ("input", "output")
    results = []
    for row in rows:
        sentences = [word_level_cross_attention(trace, row)[0] for trace in traces]
        results.append((best_head_from_weights(sentences, gold), row))
    sign = -1 if gold is None else 1  # agreement is to be high, the error rate low
    best, row = min(results, key=lambda result: sign * result[0].value)
    return AlignmentHead(best.layer, best.head, row, best.criterion, best.value)


def extract_alignment(
    trace: Trace,
    layer: int | None = None,
    head: int | None = None,
    symmetric: bool = True,
    row: Row = "input",
) -> set[Link]:
    """Extract the word alignment of a translation from its cross-attention.

    Start, end and padding are left out on both sides.

    Args:
        trace: a trace with cross-attention from "target" to "source".
        layer: layer of cross-attention; by default the best one.
        head: position among the kept heads; by default the best one.
        symmetric: see `align`.
        row: see `word_level_cross_attention`.

    Returns:
        Links (source word, target word), by the word indices of the trace.

    Raises:
        RegardError: if the trace has no cross-attention.
    """
    weights, source, target = word_level_cross_attention(trace, row)
    if layer is not None:
        weights = weights[[layer]]
    if head is not None:
        weights = weights[:, [head]]
    is_chosen = weights.shape[:2] == (1, 1)
    best = (0, 0) if is_chosen else best_head_from_weights([weights])[:2]
    links = align(weights[best], symmetric=symmetric)
    return {(source[s], target[t]) for s, t in links}


def word_level_cross_attention(
    trace: Trace, row: Row = "input"
) -> tuple[Array, list[int], list[int]]:
    """Return cross-attention between words, without special tokens and padding.

    Args:
        trace: a trace with cross-attention from "target" to "source".
        row: the rows of a Transformer's trace are named by the input token. "input" takes them as
            they are; "output" gives each word the row before, which predicted it. Traces without
            a start token have rows named by the output already, and both are the same.

    Returns:
        Weights (layer, head, target, source), and the word indices of source and target.

    Raises:
        RegardError: if the trace has no cross-attention.
    """
    words = merge_subwords(_shift_to_outputs(trace) if row == "output" else trace)
    layers = words.layers("cross", "target")
    if not layers:
        raise RegardError("an alignment needs cross-attention, but the trace has none")
    (targets, target_words), (sources, source_words) = (
        _text_words(words, name) for name in ("target", "source")
    )
    weights = _stack_layers([m.weights for m in layers])
    return weights[:, :, targets][..., sources], source_words, target_words


def _text_words(trace: Trace, name: str) -> tuple[list[int], list[int]]:
    """Return the positions of a token list that are words, and their word indices."""
    tokens = trace.tokens[name]
    words = tokens.words or tuple(range(tokens.num_words))
    skipped = {*tokens.special, *tokens.padding}
    pairs = [(n, w) for n, w in enumerate(words) if w is not None and n not in skipped]
    return [position for position, _ in pairs], [word for _, word in pairs]


def _shift_to_outputs(trace: Trace) -> Trace:
    """Move each row of cross-attention to the token it predicted, if it is at its input."""
    if 0 not in trace.tokens["target"].special:
        return trace
    maps = [
        replace(m, weights=np.roll(m.weights, 1, axis=1))
        if m.kind == "cross" and m.weights is not None
        else m
        for m in trace.maps
    ]
    return replace(trace, maps=tuple(maps))


def _stack_layers(layers: Any) -> Array:
    is_stacked = hasattr(layers, "shape")
    stack = to_array(layers) if is_stacked else np.stack([to_array(layer) for layer in layers])
    if stack.ndim != 4:
        raise RegardError(
            "weights of a sentence must be (layer, head, target, source), but their shape is "
            f"{stack.shape}"
        )
    return stack


def _count_agreements(stack: Array) -> Array:
    """Count, for each layer and head, target words that are the best of their best source word."""
    if not stack.size:
        return np.zeros(stack.shape[:2], dtype=np.int64)
    best_source, best_target = stack.argmax(-1), stack.argmax(-2)
    returned = np.take_along_axis(best_target, best_source, axis=-1)
    agrees = (returned == np.arange(stack.shape[2])) & stack.any(-1)
    return np.asarray(agrees.sum(-1))


def _error_rates(stacks: Sequence[Array], gold: Sequence[set[Link]], shift: bool) -> Array:
    if len(stacks) != len(gold):
        raise RegardError(
            f"gold must have links for each of {len(stacks)} sentences, but it has {len(gold)}"
        )
    sure = [(n, *link) for n, links in enumerate(gold) for link in links]
    layers, heads = stacks[0].shape[:2]
    rates = np.zeros((layers, heads))
    for layer, head in np.ndindex(layers, heads):
        predicted = [
            (n, *link)
            for n, stack in enumerate(stacks)
            for link in align(stack[layer, head], shift=shift)
        ]
        rates[layer, head] = alignment_error_rate(predicted, sure)
    return rates
