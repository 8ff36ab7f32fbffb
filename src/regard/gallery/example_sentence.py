"""The cat sits on the mat: a sentence in two languages, and where a translator looks in it."""

from regard.data.phrasebook import AlignedPair
from regard.gallery.one_thread import one_thread
from regard.runs import Run, trace_translation
from regard.trace import Trace, merge_subwords


def the_cat() -> AlignedPair:
    """Return the example pair, aligned as the grammar of the phrasebook aligns it."""
    return AlignedPair(
        "The cat sits on the mat.",
        "Le chat est assis sur le tapis.",
        ("The", "cat", "sits", "on", "the", "mat", "."),
        ("Le", "chat", "est", "assis", "sur", "le", "tapis", "."),
        ((0, 0), (1, 1), (2, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7)),
    )


@one_thread()
def looks(run: Run, said: AlignedPair) -> Trace:
    """Let a translator say the book's translation; tell, word by word, where it looks."""
    words = said.word_spans()
    return merge_subwords(
        trace_translation(run.model, run.tokenizers, said.source, said.target, words=words)
    )
