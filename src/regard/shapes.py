"""The names of the axes. Signatures, einsums, JSON and pictures use these and no others.

=======  =======  ==========================================
word     letter   what it counts
=======  =======  ==========================================
batch    b        batch items, such as sentences
head     h        attention heads; 1 if there is only one
query    q        positions that attend
key      k        positions that are attended to
width    d        components of one vector
value    v        components of one value, where that differs from width
=======  =======  ==========================================

Attention has queries and keys. Models have target and source words, and pass
the target as queries and the source as keys.

`*batch` stands for any number of leading axes; where there are heads, the head is
the last of them: `(batch, head, query, width)`.
"""

from typing import TypeAlias

from jaxtyping import Float
from torch import Tensor

__all__ = ["Context", "Keys", "Queries", "Scores", "Weights"]

Queries: TypeAlias = Float[Tensor, "*batch query width"]
"""The vectors that attend."""

Keys: TypeAlias = Float[Tensor, "*batch key width"]
"""The vectors that are attended to."""

Scores: TypeAlias = Float[Tensor, "*batch query key"]
"""What the softmax is of."""

Weights: TypeAlias = Float[Tensor, "*batch query key"]
"""Attention weights: what the softmax returns."""

Context: TypeAlias = Float[Tensor, "*batch query value"]
"""The values, summed by their weights."""
