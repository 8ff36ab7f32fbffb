"""Chinese realisation of meanings."""

from grammar.chinese.sentence import sentence as sentence
