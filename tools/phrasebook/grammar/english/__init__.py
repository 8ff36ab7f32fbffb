"""English: from meanings to words."""

from grammar.english.sentence import sentence as sentence
