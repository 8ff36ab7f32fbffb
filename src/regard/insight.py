"""What weights tell: how far, how sharply and in which role a head looks, and alignments."""

from collections.abc import Iterable

Links = Iterable[tuple[int, int]]


def alignment_error_rate(found: Links, gold: Links, possible: Links | None = None) -> float:
    """Tell how far found links are from gold ones: 0 is all right, 1 all wrong (Och and Ney 2003).

    1 - (|A & S| + |A & P|) / (|A| + |S|), where A was found, S is sure and P possible; all that
    is sure is possible too. Links are pairs in any order that all three share. For a corpus,
    let a link be (sentence, source, target), so that all sentences count together.
    """
    links, sure = set(found), set(gold)
    allowed = sure | set(possible or ())
    if not links and not sure:
        return 0.0
    return 1 - (len(links & sure) + len(links & allowed)) / (len(links) + len(sure))
