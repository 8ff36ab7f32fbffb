"""The cat sits on the mat: a sentence in two languages, and where a translator looks in it."""

from regard.data.phrasebook import Phrase, french
from regard.data.phrasebook.lexicon.frames import ACTIONS
from regard.data.phrasebook.lexicon.nouns import NOUN
from regard.data.phrasebook.lexicon.verbs import VERB
from regard.data.phrasebook.meaning import Clause, Nominal, Place
from regard.data.phrasebook.phrases import phrase
from regard.demo.models import word_spans
from regard.gallery.one_thread import one_thread
from regard.runs import Run, trace_translation
from regard.trace import Trace, merge_subwords


def the_cat() -> Phrase:
    """Say it by the phrasebook's grammar, which knows the words that belong together."""
    cat, mat = NOUN["cat"], NOUN["mat"]
    sit = next(one for one in ACTIONS if one.verb == VERB["sit"] and cat in one.subjects)
    meaning = Clause(sit, Nominal(cat), place=Place("on", Nominal(mat)))
    return phrase(meaning, "fr", french.sentence)


@one_thread()
def looks(run: Run, said: Phrase) -> Trace:
    """Let a translator say the book's translation; tell, word by word, where it looks."""
    words = word_spans(said)
    return merge_subwords(
        trace_translation(run.model, run.tokenizers, said.source, said.target, words=words)
    )
