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

from contextlib import AbstractContextManager, nullcontext
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Queries: TypeAlias = Float[Tensor, "*batch query width"]
Keys: TypeAlias = Float[Tensor, "*batch key width"]
Values: TypeAlias = Float[Tensor, "*batch key value"]
Scores: TypeAlias = Float[Tensor, "*batch query key"]
Weights: TypeAlias = Float[Tensor, "*batch query key"]
Context: TypeAlias = Float[Tensor, "*batch query value"]
Bias: TypeAlias = Float[Tensor, "*#batch #query #key"]
MayLook: TypeAlias = Bool[Tensor, "*#batch #query #key"]
"""True where a query may look. Never the other way round."""


def unrounded(numbers: Tensor) -> AbstractContextManager[object]:
    """Compute with numbers as they are, where autocast would round them to half precision."""
    kind = numbers.device.type
    cast = kind != "meta" and torch.is_autocast_enabled(kind)
    return torch.autocast(kind, enabled=False) if cast else nullcontext()


def precise(numbers: Tensor) -> Tensor:
    """Widen half precision to float32: scores of 50 would be rounded by 0.03 in float16."""
    return numbers.float() if numbers.dtype in (torch.float16, torch.bfloat16) else numbers
