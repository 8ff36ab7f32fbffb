"""English realisation of meanings."""

from grammar.english.sentence import sentence as sentence
