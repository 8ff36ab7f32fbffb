"""Chinese: from meanings to words."""

from regard.data.phrasebook.chinese.sentence import sentence as sentence
