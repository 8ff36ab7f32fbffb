"""Word alignments: links extracted from attention weights, and the alignment error rate."""

from collections.abc import Iterable
from typing import Any

from regard.errors import RegardError
from regard.trace import to_array

Link = tuple[int, int]
"""(source word, target word)."""

_NEIGHBOURS = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]


def align(weights: Any, *, symmetric: bool = False) -> set[Link]:
    """Link each target word to the source word with the largest attention weight.

    Args:
        weights: those of one head, (target, source): row i belongs to the step that writes target
            word i. A row of zeros gets no link.
        symmetric: also link each source word to its best target word, and symmetrise.

    Returns:
        Links (source word, target word).

    Raises:
        RegardError: if the weights are not those of one head.

    Example:
        >>> sorted(align([[0.9, 0.1], [0.2, 0.8]]))
        [(0, 0), (1, 1)]
    """
    rows = to_array(weights)
    if rows.ndim != 2:
        raise RegardError(
            f"weights must be those of one head, (target, source), but their shape is {rows.shape};"
            " weights[0, 0] would be one head of a batch"
        )
    links = {(int(row.argmax()), target) for target, row in enumerate(rows) if row.any()}
    if not symmetric:
        return links
    backward = {(source, int(col.argmax())) for source, col in enumerate(rows.T) if col.any()}
    return symmetrise(links, backward)


def symmetrise(forward: Iterable[Link], backward: Iterable[Link]) -> set[Link]:
    """Symmetrise two alignments by grow-diag (Koehn, Och and Marcu 2003).

    Start from the intersection. A link of the union joins if it is a neighbour of a link that is
    in, diagonally too, and its source or target word has no link yet.

    Example:
        >>> sorted(symmetrise({(0, 0), (1, 1)}, {(0, 0)}))
        [(0, 0), (1, 1)]
    """
    forward, backward = set(forward), set(backward)
    links, candidates = forward & backward, sorted(forward ^ backward)
    has_grown = True
    while has_grown:
        has_grown = False
        for source, target in candidates:
            is_near = any((source + i, target + j) in links for i, j in _NEIGHBOURS)
            is_free = all(source != s for s, _ in links) or all(target != t for _, t in links)
            if is_near and is_free and (source, target) not in links:
                links.add((source, target))
                has_grown = True
    return links


def alignment_error_rate(
    predicted: Iterable[tuple[int, ...]],
    gold: Iterable[tuple[int, ...]],
    possible: Iterable[tuple[int, ...]] | None = None,
) -> float:
    """Return the alignment error rate (Och and Ney 2003): 0 is perfect, 1 is all wrong.

    `AER = 1 - (|A & S| + |A & P|) / (|A| + |S|)` for predicted links A, sure links S and possible
    links P, where S is a subset of P.

    Args:
        predicted: links as tuples, in any order that all three arguments share. For a corpus,
            make them (sentence, source, target), so that all sentences count together.
        gold: sure links.
        possible: possible links; the sure ones need not be repeated.

    Example:
        >>> alignment_error_rate({(0, 0), (1, 2)}, {(0, 0), (1, 1)})
        0.5
    """
    links, sure = set(predicted), set(gold)
    allowed = sure | set(possible or ())
    if not links and not sure:
        return 0.0
    return 1 - (len(links & sure) + len(links & allowed)) / (len(links) + len(sure))
