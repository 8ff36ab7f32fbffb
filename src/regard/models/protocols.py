"""The contract of every translator: encode, decode all at once, or step by step."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor


class Looks(NamedTuple):
    """Where a model looked, a tensor (batch, head, query, key) per layer; no layers, no looks."""

    encoder: tuple[Tensor, ...] = ()
    decoder: tuple[Tensor, ...] = ()
    cross: tuple[Tensor, ...] = ()


@runtime_checkable
class Past(Protocol):
    """What a decoder knows after some steps; continuations are counted over all sentences."""

    def reorder(self, rows: Tensor) -> "Past":
        """Let each continuation go on from the given one's past; the source stays."""
        ...

    def keep(self, sentences: Tensor, rows: Tensor) -> "Past":
        """Go on with some sentences, and with the continuations that are given by their rows."""
        ...


@runtime_checkable
class DecoderModel(Protocol):
    """What `search` needs: to take a step from a past, and to score the next token."""

    def step(
        self, tokens: Int[Tensor, "sentence beam"], past: Any
    ) -> tuple[Float[Tensor, "sentence beam width"], Any]:
        """Read one token per continuation; give their states, and the past they make."""
        ...

    def output(self, states: Tensor) -> Tensor:
        """Score every token of the vocabulary as the next one."""
        ...


@runtime_checkable
class Seq2SeqModel(DecoderModel, Protocol):
    """A generator that is given a source sentence."""

    output_weight: Tensor  # (token, width): what `output` multiplies states with
    looks_late: bool  # a word's own look is that of the step which reads it, not chooses it

    def encode(self, source: Tensor, lengths: Tensor) -> Any:
        """Read the source (batch, position) once."""
        ...

    def decode(self, target: Tensor, memory: Any) -> Tensor:
        """Read a whole target, each position seeing only those before it; give all states."""
        ...

    def start(self, memory: Any) -> Past:
        """Give the past before the first step, one continuation per sentence."""
        ...

    def look(self, source: Tensor, lengths: Tensor, target: Tensor) -> tuple[Tensor, Looks]:
        """Encode and decode, and tell where every layer and head looked."""
        ...


def encoded(model: Seq2SeqModel, source: Tensor, lengths: Tensor) -> Any:
    """Encode many sentences; a model that has a faster way to do so names it `encode_apart`."""
    encode = getattr(model, "encode_apart", model.encode)
    return encode(source, lengths)


def longest(model: object) -> int | None:
    """Tell how many tokens a model can read on either side, start included; None for any."""
    told: int | None = getattr(model, "longest", None)
    return told
