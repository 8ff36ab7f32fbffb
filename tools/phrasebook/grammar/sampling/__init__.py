"""Chance: meanings drawn at random, each of which makes sense."""

from grammar.sampling.sentences import sentence as sentence
