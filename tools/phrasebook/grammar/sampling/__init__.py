"""Random meanings that make sense."""

from grammar.sampling.messages import message as message
from grammar.sampling.sentences import sentence as sentence
