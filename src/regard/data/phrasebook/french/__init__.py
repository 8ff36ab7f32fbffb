"""French: from meanings to words."""

from regard.data.phrasebook.french.sentence import sentence as sentence
