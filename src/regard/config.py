"""Every setting of a run, with its default."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    """What a translator is made of."""

    kind: Literal["transformer", "recurrent"] = "transformer"
    width: int = 128  # numbers in one vector
    layers: int = 4  # of encoder and decoder each
    heads: int = 4  # transformer only, as are the next four
    key_heads: int | None = None  # as many as heads, unless they are grouped
    hidden: int = 256  # width inside the feed-forward
    norm: Literal["post", "pre"] = "post"
    positions: Literal["sinusoidal", "learned", "rotary", "alibi"] = "sinusoidal"
    longest: int = 512  # positions of a learned table
    score: str = "scaled dot"  # additive makes the recurrent one Bahdanau's
    dropout: float = 0.1
    shared: bool = True  # one embedding for source and target, if their vocabularies are one
    tied: bool = True  # the output layer is the target embedding
