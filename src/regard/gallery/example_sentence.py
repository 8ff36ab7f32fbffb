"""The sentence that several figures show, and its trace by a translator."""

from regard.data.phrasebook import AlignedPair
from regard.gallery.single_thread import single_thread
from regard.runs import Run
from regard.trace import Trace, merge_subwords


def example_pair() -> AlignedPair:
    """Return the example pair, aligned as the grammar of the phrasebook aligns it."""
    return AlignedPair(
        "The cat sits on the mat.",
        "Le chat est assis sur le tapis.",
        ("The", "cat", "sits", "on", "the", "mat", "."),
        ("Le", "chat", "est", "assis", "sur", "le", "tapis", "."),
        ((0, 0), (1, 1), (2, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7)),
    )


@single_thread()
def trace_pair(run: Run, pair: AlignedPair) -> Trace:
    """Trace a run that is teacher-forced to the reference, word by word."""
    return merge_subwords(run.trace(pair.source, pair.target, words=pair.word_spans()))
