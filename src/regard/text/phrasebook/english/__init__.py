"""English: from meanings to words."""

from regard.text.phrasebook.english.sentence import sentence as sentence
