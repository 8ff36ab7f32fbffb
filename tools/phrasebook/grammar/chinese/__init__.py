"""Chinese: from meanings to words."""

from grammar.chinese.sentence import sentence as sentence
