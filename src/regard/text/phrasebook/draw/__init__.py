"""Chance: meanings drawn at random, each of which makes sense."""

from regard.text.phrasebook.draw.sentences import sentence as sentence
