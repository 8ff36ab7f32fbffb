"""Which word was translated by which: links read from cross-attention, and how wrong they are."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from regard.trace import Array, Trace, merge_subwords, to_array

Link = tuple[int, int]
"""(source word, target word)."""

Step = Literal["read", "chosen"]
"""At which step of a decoder a word's look is taken: where it is read, or where it is chosen."""

_NEIGHBOURS = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]


def align(weights: Any, *, late: bool = False, symmetric: bool = False) -> set[Link]:
    """Link each target word to the source word it looks at most: (source, target).

    Weights are those of one head, (target, source). A row that looks nowhere gets no link.

    Args:
        late: rows are a decoder's steps, the first of which reads the start token. Then each
            word is read one step late, where it is the input, not where it was chosen; for a
            Transformer that is where it looks at its own translation.
        symmetric: let source words choose, too, and grow what both agree upon.
    """
    rows = to_array(weights)
    if rows.ndim != 2:
        raise ValueError(
            f"weights must be one head's, (target, source), but their shape is {rows.shape}; "
            "weights[0, 0] would be one head of a batch"
        )
    rows = rows[1:] if late else rows
    links = {(int(row.argmax()), target) for target, row in enumerate(rows) if row.any()}
    if not symmetric:
        return links
    back = {(source, int(col.argmax())) for source, col in enumerate(rows.T) if col.any()}
    return symmetrise(links, back)


def symmetrise(forward: Iterable[Link], backward: Iterable[Link]) -> set[Link]:
    """Grow what two alignments agree upon by their neighbouring links (Koehn et al. 2003).

    A link of either joins if it touches one that is there, at a side or a corner, and its
    source or target word has none yet.
    """
    forward, backward = set(forward), set(backward)
    links, rest = forward & backward, sorted(forward ^ backward)
    grown = True
    while grown:
        grown = False
        for source, target in rest:
            near = any((source + i, target + j) in links for i, j in _NEIGHBOURS)
            free = all(source != s for s, _ in links) or all(target != t for _, t in links)
            if near and free and (source, target) not in links:
                links.add((source, target))
                grown = True
    return links


def alignment_error_rate(
    found: Iterable[tuple[int, ...]],
    gold: Iterable[tuple[int, ...]],
    possible: Iterable[tuple[int, ...]] | None = None,
) -> float:
    """Tell how far found links are from gold ones: 0 is all right, 1 all wrong (Och and Ney 2003).

    1 - (|A & S| + |A & P|) / (|A| + |S|), where A was found, S is sure and P possible; all that
    is sure is possible too. Links are tuples in any order that all three share. For a corpus,
    let a link be (sentence, source, target), so that all sentences count together.
    """
    links, sure = set(found), set(gold)
    allowed = sure | set(possible or ())
    if not links and not sure:
        return 0.0
    return 1 - (len(links & sure) + len(links & allowed)) / (len(links) + len(sure))


class BestHead(NamedTuple):
    """The head whose looks are the best alignment, and by what."""

    layer: int
    head: int
    criterion: str
    value: float
    values: Array  # (layer, head)


def best_head(
    sentences: Iterable[Any],
    gold: Iterable[Iterable[Link]] | None = None,
    *,
    late: bool = False,
) -> BestHead:
    """Find the head of the best alignment, over one or more sentences.

    Where gold links are known, it is the head of the lowest alignment error rate over all
    sentences together. Else it is the head of the highest agreement: the share of target words
    that are also chosen back, as the one that looks most at it, by the word they choose.

    Args:
        sentences: for each, weights (layer, head, target, source), or one (head, target,
            source) per layer.
        gold: for each sentence its links.
        late: see `align`.
    """
    stacks = [_stack(layers) for layers in sentences]
    if not stacks:
        raise ValueError("there must be one sentence or more, but there is none")
    if gold is None:
        agreed = sum(_agreements(stack[:, :, 1:] if late else stack) for stack in stacks)
        words = sum(stack.shape[2] - late for stack in stacks)
        values = np.asarray(agreed / max(1, words))
        best = int(values.argmax())
        criterion = "highest agreement"
    else:
        values = _error_rates(stacks, [set(links) for links in gold], late)
        best = int(values.argmin())
        criterion = "lowest alignment error rate"
    layer, head = divmod(best, values.shape[1])
    return BestHead(layer, head, criterion, float(values[layer, head]), values)


def read_alignment(
    trace: Trace,
    layer: int | None = None,
    head: int | None = None,
    symmetric: bool = True,
    step: Step = "read",
) -> set[Link]:
    """Read the links between the words of a translation's trace, as words are numbered there.

    Rows of a trace are named by the token that is read, so they are one step late already.
    Without a layer or a head, the best head is taken of those that are left to choose from.
    Start, end and padding are left out on both sides.
    """
    stack, source, target = between_words(trace, step)
    if layer is not None:
        stack = stack[[layer]]
    if head is not None:
        stack = stack[:, [head]]
    best = (0, 0) if stack.shape[:2] == (1, 1) else best_head([stack])[:2]
    links = align(stack[best], symmetric=symmetric)
    return {(source[s], target[t]) for s, t in links}


class Reading(NamedTuple):
    """Which looks of a translator are the best alignment, and by what."""

    layer: int
    head: int
    step: Step
    criterion: str
    value: float


def best_reading(traces: Sequence[Trace], gold: Sequence[Iterable[Link]] | None = None) -> Reading:
    """Find the head, and the step at which it is read, of the best alignment over some traces.

    See `best_head` for the criterion. Which step is the better one depends on the depth of the
    model: where the last layers must find the next word, it is the step that chooses it.
    """
    steps: list[Step] = ["read", "chosen"]
    found = [(best_head([between_words(t, step)[0] for t in traces], gold), step) for step in steps]
    lowest = gold is not None
    best, step = min(found, key=lambda one: one[0].value if lowest else -one[0].value)
    return Reading(best.layer, best.head, step, best.criterion, best.value)


def between_words(trace: Trace, step: Step = "read") -> tuple[Array, list[int], list[int]]:
    """Give cross-attention over real words, (layer, head, target, source), and their numbers.

    Args:
        step: rows of a Transformer's trace are named by the token that is read. A word can also
            be given the row that chose it, one before. Rows without a start token are those that
            chose the word already.
    """
    told = merge_subwords(_chosen(trace) if step == "chosen" else trace)
    layers = told.layers("cross", "target")
    if not layers:
        raise ValueError("an alignment is read from cross-attention, but the trace has none")
    places, numbers = [], []
    for name in ("target", "source"):
        tokens = told.tokens[name]
        words = tokens.words or tuple(range(tokens.num_words))
        out = {*tokens.special, *tokens.padding}
        kept = [n for n, word in enumerate(words) if word is not None and n not in out]
        places.append(kept)
        numbers.append([word for n in kept if (word := words[n]) is not None])
    stack = _stack([look.weights for look in layers])
    return stack[:, :, places[0]][..., places[1]], numbers[1], numbers[0]


def _chosen(trace: Trace) -> Trace:
    """Move each row of cross-attention to the token that it chose, if it is at the one it read."""
    if 0 not in trace.tokens["target"].special:
        return trace
    maps = [
        replace(look, weights=np.roll(look.weights, 1, axis=1))
        if look.kind == "cross" and look.weights is not None
        else look
        for look in trace.maps
    ]
    return replace(trace, maps=tuple(maps))


def _stack(layers: Any) -> Array:
    stack = (
        to_array(layers) if hasattr(layers, "shape") else np.stack([to_array(x) for x in layers])
    )
    if stack.ndim != 4:
        raise ValueError(
            "a sentence must be weights (layer, head, target, source), but their shape is "
            f"{stack.shape}"
        )
    return stack


def _agreements(stack: Array) -> Array:
    """Count, for each layer and head, the target words that are chosen back."""
    if not stack.size:
        return np.zeros(stack.shape[:2], dtype=np.int64)
    there, back = stack.argmax(-1), stack.argmax(-2)
    returned = np.take_along_axis(back, there, axis=-1)
    agreed = (returned == np.arange(stack.shape[2])) & stack.any(-1)
    return np.asarray(agreed.sum(-1))


def _error_rates(stacks: Sequence[Array], gold: Sequence[set[Link]], late: bool) -> Array:
    if len(stacks) != len(gold):
        raise ValueError(
            f"gold must be links for each of {len(stacks)} sentences, but {len(gold)} came"
        )
    sure = [(n, *link) for n, links in enumerate(gold) for link in links]
    layers, heads = stacks[0].shape[:2]
    values = np.zeros((layers, heads))
    for layer, head in np.ndindex(layers, heads):
        found = [
            (n, *link)
            for n, stack in enumerate(stacks)
            for link in align(stack[layer, head], late=late)
        ]
        values[layer, head] = alignment_error_rate(found, sure)
    return values
