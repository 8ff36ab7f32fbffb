"""Chinese: from meanings to words."""

from regard.text.phrasebook.chinese.sentence import sentence as sentence
