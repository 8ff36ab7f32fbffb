"""The words for axes. Signatures, einsums and pictures use these and no others.

word     letter   what it counts
batch    b        sentences side by side
head     h        attentions in parallel; 1 when there is only one
query    q        positions that look
key      k        positions that are looked at
width    d        numbers in one vector
value    v        numbers in one value, where that differs from width

Attention speaks of queries and keys. Models speak of target and source words,
and hand the target over as queries and the source as keys.

`*batch` stands for any number of leading axes; where there are heads, the head is
the last of them: `(batch, head, query, width)`.
"""

from typing import TypeAlias

from jaxtyping import Float
from torch import Tensor

Queries: TypeAlias = Float[Tensor, "*batch query width"]
Keys: TypeAlias = Float[Tensor, "*batch key width"]
Values: TypeAlias = Float[Tensor, "*batch key value"]
Scores: TypeAlias = Float[Tensor, "*batch query key"]
Weights: TypeAlias = Float[Tensor, "*batch query key"]
Context: TypeAlias = Float[Tensor, "*batch query value"]
