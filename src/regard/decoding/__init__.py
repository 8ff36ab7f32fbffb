"""Decoding: beam search, greedy search and sampling, and translation of text."""
