"""English: from meanings to words."""

from regard.data.phrasebook.english.sentence import sentence as sentence
