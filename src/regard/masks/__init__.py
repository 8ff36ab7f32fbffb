"""Who may look where: causal, lengths, padding, window, documents, prefix; joined with & | ~.

A mask is boolean and True means *may look*. It stays an expression until a path needs
the numbers, and then only for the rows it needs:

    >>> mask = causal() & lengths([3, 2])
    >>> mask
    causal() & lengths([3, 2])
    >>> mask.explain(query=0, key=2)
    'query 0 may not look at key 2: hidden by causal()'
"""

from regard.masks.base import Mask as Mask
from regard.masks.base import as_mask as as_mask
from regard.masks.convert import from_hf as from_hf
from regard.masks.convert import from_torch as from_torch
from regard.masks.lengths import documents as documents
from regard.masks.lengths import lengths as lengths
from regard.masks.lengths import padding as padding
from regard.masks.lengths import prefix as prefix
from regard.masks.positional import Align as Align
from regard.masks.positional import causal as causal
from regard.masks.positional import window as window
from regard.masks.shape import AttentionShape as AttentionShape
