"""Random meanings that make sense."""

from grammar.sampling.sentences import sentence as sentence
