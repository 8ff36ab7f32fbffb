"""The one record that every picture reads: tokens, and where each head looked from one to another.

A trace knows no model and needs no torch: its numbers are numpy arrays. In a file it is JSON,
compressed if the file's name ends in .gz:

    {"format": "regard trace", "version": 1,
     "title": "a text", "model": "a text",
     "tokens": {NAME: TOKENS, ...},          at least one list, by any name
     "gold": [[SOURCE WORD, TARGET WORD]],   only if known: links from "source" to "target"
     "looks": [LOOK, ...]}                   in the order in which the model looked

    TOKENS = {
     "pieces": ["▁look", "ing", "</s>"],
     "words": [0, 0, null],                  if known: the word of each piece, from 0 upwards;
                                             null belongs to none; without it each is a word
     "special": [2],                         positions of pieces that are not text: start, end
     "padding": [],                          positions that fill a batch up
     "log_probabilities": [null, -0.1, 0]}   if known: of each piece, null where there is none

    LOOK = {
     "name": "decoder.layers.0.cross",       the module that looked
     "kind": "self" | "causal" | "cross",
     "queries": NAME, "keys": NAME,          which tokens look at which
     "call": 0,                              counts the calls of this module
     "place": "model.py:41",                 the line that looked, or ""
     "heads": [0, 1, 2],                     the numbers of the heads that were kept
     "sizes": [3, 5, 7],                     kept heads, queries, keys
     "weights": NUMBERS [head, query, key]   whole, or else:
     "reduced": {
       "top": NUMBERS [head, query, rank],          keys, heaviest first
       "top_weights": NUMBERS [head, query, rank],
       "left_out": NUMBERS [head, query],           what the other keys got together
       "tiles": NUMBERS [head, row, column],        mean weights of a coarse picture
       "entropy": NUMBERS [head, query],            in nats
       "received": NUMBERS [head, key],             mean over the queries that look anywhere
       "distance": NUMBERS [head, query]},          mean of |key - query|, positions
     "value_norms": NUMBERS [head, key]}     if known: how long each value was at the call

    NUMBERS = {"shape": [3, 5, 7], "bits": 8 | 16 | 32, "scale": 1.5e-05, "data": "base64"}

The data are unsigned integers of so many bits, little-endian, the last axis running fastest; a
number is its integer times the scale. A row of weights sums to 1, or to 0 where a query looks
nowhere. Tile row r of R holds queries floor(r Q / R) up to, not including, floor((r + 1) Q / R),
and likewise columns of keys. Looks of one kind between the same two token lists are the layers
of one stack, in order. Keys that are not listed here may be absent, and others are left alone.
"""

from regard.trace.file import load_trace as load_trace
from regard.trace.record import Look as Look
from regard.trace.record import Reduced as Reduced
from regard.trace.record import Tokens as Tokens
from regard.trace.record import Trace as Trace
from regard.trace.record import translation as translation
from regard.trace.special import fold_special as fold_special
from regard.trace.subwords import merged as merged
from regard.trace.summary import reduced as reduced
