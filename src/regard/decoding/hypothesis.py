"""What a search takes and returns: length limits, hypotheses, and its cancellation."""

from dataclasses import dataclass
from typing import NamedTuple

from regard._support.arguments import to_integer
from regard.data import BOS, EOS, PAD
from regard.errors import RegardError


class Hypothesis(NamedTuple):
    """One complete output of a search.

    Attributes:
        tokens: token ids without BOS and EOS.
        log_prob: log-probability of the tokens and of EOS, by the model.
        token_log_probs: log-probability of each token given those before it; the last one is
            EOS's. They sum to `log_prob`.
        score: `log_prob / (len(tokens) + 1) ** length_penalty`, by which beam search ranks.

    Example:
        >>> hypothesis = Hypothesis((7, 5), -1.5, (-0.5, -0.75, -0.25), score=-0.5)
        >>> len(hypothesis.tokens), hypothesis.log_prob == sum(hypothesis.token_log_probs)
        (2, True)
    """

    tokens: tuple[int, ...]
    log_prob: float
    token_log_probs: tuple[float, ...]
    score: float


@dataclass(frozen=True, kw_only=True, slots=True)
class LengthLimits:
    """Limits of an output's length, EOS not counted, and the tokens it must begin with.

    Attributes:
        min_length: EOS is not allowed before this many tokens.
        max_length: EOS is forced after this many tokens.
        prefix: token ids that every output begins with (prefix-constrained decoding, or a
            language model's prompt).

    Raises:
        RegardError: if the limits contradict each other, or the prefix has special tokens.
        TypeError: if a limit is not an integer.

    Example:
        >>> LengthLimits(min_length=2, max_length=9, prefix=(5, 6)).max_length
        9
    """

    min_length: int = 0
    max_length: int = 256
    prefix: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("min_length", "max_length"):
            to_integer(name, getattr(self, name))
        if not 0 <= self.min_length <= self.max_length:
            raise RegardError(
                f"min_length must be from 0 to max_length, but they are {self.min_length} and "
                f"{self.max_length}"
            )
        if len(self.prefix) > self.max_length:
            raise RegardError(
                f"prefix must have at most max_length={self.max_length} tokens, but it has "
                f"{len(self.prefix)}"
            )
        for token in self.prefix:
            if token < 0 or token in (PAD, BOS, EOS):
                raise RegardError(
                    "prefix must be tokens of the vocabulary without padding, start and end, "
                    f"but one is {token}"
                )


DEFAULT_LIMITS = LengthLimits()


class DecodingCancelled(Exception):
    """Raised by a search whose `should_stop` returned True."""
