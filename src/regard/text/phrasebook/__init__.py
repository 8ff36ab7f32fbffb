"""The embedded bilingual corpus: English to French and Chinese, with gold alignments."""

from regard.text.phrasebook.phrases import Corpus as Corpus
from regard.text.phrasebook.phrases import Phrase as Phrase
from regard.text.phrasebook.phrases import corpus as corpus
from regard.text.phrasebook.phrases import phrases as phrases
from regard.text.phrasebook.words import join as join
from regard.text.phrasebook.words import words as words
