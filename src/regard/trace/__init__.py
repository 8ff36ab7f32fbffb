"""The attention trace: the one record that every picture and every analysis reads.

A trace holds token lists and the attention maps between them. It knows no model and needs no torch:
arrays are numpy arrays. `attention_map.py`, `image.py` and `trace.py` have the data model, and
`value_checks.py` its checks. `translation_trace.py` builds the trace of a translation.
`grouping.py` and `summary.py` turn a trace into a smaller one (the summary itself is computed in
`block_summary.py`, the one file that imports torch). `serialization.py` writes and reads traces. In
a file a trace is JSON, compressed with gzip if the name ends in .gz::

    {"format": "regard trace", "version": 4,
     "title": "a string", "model": "a string",
     "tokens": {NAME: TOKENS, ...},          one token list or more, by any name; see below
     "gold": [[SOURCE WORD, TARGET WORD]],   if known: links from "source" to "target"
     "images": {NAME: IMAGE, ...},           if known: images whose patches are a token list
     "maps": [MAP, ...]}                     in the order in which they were computed

    TOKENS = {
     "pieces": ["▁look", "ing", "</s>"],
     "words": [0, 0, null],                  if known: the word of each piece, counted from 0;
                                             null for none; without it each piece is a word
     "special": [2],                         positions of pieces that are not text: start, end
     "padding": [],                          positions that only fill a batch
     "log_probs": [null, -0.1, 0]}           if known: log-probability of each piece, or null

    MAP = {
     "name": "decoder.layers.0.cross",       the attention module
     "kind": "self" | "causal" | "cross",
     "queries": NAME, "keys": NAME,          the token lists of both axes
     "query_inputs": NAME,                   if known: other names of the rows, see below
     "call": 0,                              counts the calls of this module
     "call_site": "model.py:41",             source line of the call, or ""
     "heads": [0, 1, 2],                     indices of the heads that were kept
     "shape": [3, 5, 7],                     kept heads, queries, keys
     "weights": ARRAY [head, query, key]     in full, or else:
     "summary": {
       "top_keys": ARRAY [head, query, rank],       heaviest first
       "top_weights": ARRAY [head, query, rank],
       "remainder": ARRAY [head, query],            total weight of all other keys
       "tiles": ARRAY [head, row, column],          mean weights of a coarse picture
       "entropy": ARRAY [head, query],              in nats
       "received": ARRAY [head, key],               mean over queries with any weight
       "distance": ARRAY [head, query]},            mean of |key - query|, in positions
     "value_norms": ARRAY [head, key]}       if known: norm of each value vector

    ARRAY = {"shape": [3, 5, 7], "bits": 8 | 16 | 32, "scale": 1.5e-05, "data": "base64"}

    IMAGE = {
     "height": 8, "width": 8,                in pixels, at most 512
     "data": "base64",                       red, green and blue bytes of each pixel, row by row
     "grid": [4, 4],                         rows and columns of patches, which are tokens in order
     "first": 1}                             position of the first patch: 1 after a class token

The data are unsigned little-endian integers of that many bits in C order (last axis fastest); a
value is its integer times the scale. A row of weights sums to 1, or to 0 if all keys are masked.
Tile row r of R covers queries floor(r Q / R) up to, but not including, floor((r + 1) Q / R), and
tile columns cover keys alike. Maps of one kind between the same two token lists are the layers of
one stack, in order. Optional keys may be absent; unknown keys are ignored.

The trace of a translation has three token lists: "source", which the encoder reads; "target", the
tokens that the decoder writes, up to the end token; and "decoder_input", the tokens that it reads
at the same steps: the start token, then the target without the end token. A row of cross-attention
is the step that writes its "target" token: the row of "chat" has its weight at "cat". In a
Transformer that step reads the token before, so such maps have "query_inputs": "decoder_input", by
which pictures can name their rows instead (`rows="input"`). Self-attention of the decoder is
between "decoder_input" tokens. Files of format version 2, in which the rows of cross-attention
bore the names of the tokens before, and of version 3, before there were images, are refused.
"""

from regard.trace.attention_map import KINDS, AttentionMap, AttentionSummary, Kind, TokenList
from regard.trace.grouping import collapse_special, merge_subwords
from regard.trace.image import MAX_IMAGE_SIDE, PatchImage
from regard.trace.quantization import Array, dequantize, quantize, to_array
from regard.trace.serialization import load_trace, read_trace_text
from regard.trace.summary import MAX_TILES, TOP_KEYS, summarize, summarize_weights
from regard.trace.trace import Rows, Trace
from regard.trace.translation_trace import build_translation_trace

__all__ = [
    "KINDS",
    "MAX_IMAGE_SIDE",
    "MAX_TILES",
    "TOP_KEYS",
    "Array",
    "AttentionMap",
    "AttentionSummary",
    "Kind",
    "PatchImage",
    "Rows",
    "TokenList",
    "Trace",
    "build_translation_trace",
    "collapse_special",
    "dequantize",
    "load_trace",
    "merge_subwords",
    "quantize",
    "read_trace_text",
    "summarize",
    "summarize_weights",
    "to_array",
]
