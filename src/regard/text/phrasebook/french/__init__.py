"""French: from meanings to words."""

from regard.text.phrasebook.french.sentence import sentence as sentence
