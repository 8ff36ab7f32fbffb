"""Who may look where: causal, lengths, padding, window, documents, prefix; joined with & | ~.

A mask is boolean and True means *may look*. It stays an expression until a path needs
the numbers, and then only for the rows it needs:

    >>> mask = causal() & lengths([3, 2])
    >>> mask
    causal() & lengths([3, 2])
    >>> mask.explain(query=0, key=2)
    'query 0 may not look at key 2: hidden by causal()'
"""

from regard.masks.distance import Align as Align
from regard.masks.distance import causal as causal
from regard.masks.distance import window as window
from regard.masks.expression import Mask as Mask
from regard.masks.expression import as_mask as as_mask
from regard.masks.foreign import from_hf as from_hf
from regard.masks.foreign import from_torch as from_torch
from regard.masks.frame import Frame as Frame
from regard.masks.sentence import documents as documents
from regard.masks.sentence import lengths as lengths
from regard.masks.sentence import padding as padding
from regard.masks.sentence import prefix as prefix
