"""French: from meanings to words."""

from grammar.french.sentence import sentence as sentence
