"""Masks: causal, window, lengths, prefix, padding and documents, combined with & | ~.

A mask is boolean and True means *may attend*. It stays an expression until a backend needs its
values, and then only for the rows it needs:

    >>> mask = causal() & lengths([3, 2])
    >>> mask
    causal() & lengths([3, 2])
    >>> mask.explain(query=0, key=2)
    'query 0 may not attend to key 2: masked by causal()'

`base` has the class `Mask` and its operators, `positional` the masks by position, `sequence` those
by length, padding and document, `shape` the sizes that a mask is materialized for, and `convert`
reads the masks of torch and Hugging Face.
"""

from regard.masks.base import Mask, as_mask
from regard.masks.convert import from_hf, from_torch
from regard.masks.positional import Align, causal, window
from regard.masks.sequence import documents, lengths, padding, prefix
from regard.masks.shape import AttentionShape, is_broadcastable

__all__ = [
    "Align",
    "AttentionShape",
    "Mask",
    "as_mask",
    "causal",
    "documents",
    "from_hf",
    "from_torch",
    "is_broadcastable",
    "lengths",
    "padding",
    "prefix",
    "window",
]
