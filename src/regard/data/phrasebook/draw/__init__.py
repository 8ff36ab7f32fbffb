"""Chance: meanings drawn at random, each of which makes sense."""

from regard.data.phrasebook.draw.sentences import sentence as sentence
