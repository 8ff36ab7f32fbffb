"""French realisation of meanings."""

from grammar.french.sentence import sentence as sentence
