"""The embedded bilingual corpus: English to French and Chinese, with gold alignments."""

from regard.data.phrasebook.phrases import Corpus as Corpus
from regard.data.phrasebook.phrases import Phrase as Phrase
from regard.data.phrasebook.phrases import corpus as corpus
from regard.data.phrasebook.phrases import phrases as phrases
from regard.data.phrasebook.words import join as join
from regard.data.phrasebook.words import words as words
