"""What goes in and out of a translation: options, batches of sentences, and translations."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from regard.config import SearchConfig
from regard.decoding.batching import max_target_length
from regard.decoding.hypothesis import LengthLimits
from regard.decoding.sampling import SamplingConfig
from regard.errors import RegardError


class TranslationScores(NamedTuple):
    """Log-probabilities of a translation; see `Translation`."""

    log_prob: float = 0.0
    token_log_probs: tuple[float, ...] = ()
    score: float = 0.0


class Translation:
    """One translation of a sentence; `str(translation)` is its text.

    Attributes:
        text: the translation.
        tokens: its token ids, without BOS and EOS.
        log_prob: log-probability of the tokens and of EOS, by the model.
        token_log_probs: log-probability of each token given those before it; the last one is
            EOS's. They sum to `log_prob`. Empty for the translation of an empty sentence.
        score: by which alternatives are ranked; see `Hypothesis`.

    Example:
        >>> translation = Translation("le chat", (7, 5), -1.5, (-0.5, -0.75, -0.25), score=-0.5)
        >>> print(translation)
        le chat
        >>> translation
        <Translation 'le chat': log_prob=-1.5>
        >>> translation.tokens
        (7, 5)
    """

    __slots__ = ("_scores", "text", "tokens")

    def __init__(
        self,
        text: str,
        tokens: tuple[int, ...] = (),
        log_prob: float = 0.0,
        token_log_probs: tuple[float, ...] = (),
        score: float = 0.0,
    ) -> None:
        self.text = text
        self.tokens = tokens
        self._scores: TranslationScores | Callable[[], TranslationScores]
        self._scores = TranslationScores(log_prob, token_log_probs, score)

    @classmethod
    def with_deferred_scores(
        cls, text: str, tokens: tuple[int, ...], compute: Callable[[], TranslationScores]
    ) -> "Translation":
        """Return a translation whose scores are computed when one of them is first read."""
        translation = cls(text, tokens)
        translation._scores = compute
        return translation

    @property
    def log_prob(self) -> float:
        """Log-probability of the tokens and of EOS, by the model."""
        return self.scores.log_prob

    @property
    def token_log_probs(self) -> tuple[float, ...]:
        """Log-probability of each token given those before it; the last one is EOS's."""
        return self.scores.token_log_probs

    @property
    def score(self) -> float:
        """By which alternatives are ranked; see `Hypothesis`."""
        return self.scores.score

    @property
    def scores(self) -> TranslationScores:
        """The log-probabilities and the score."""
        if not isinstance(self._scores, TranslationScores):
            self._scores = self._scores()
        return self._scores

    def __reduce__(self) -> tuple[Any, ...]:
        # scores that are not computed yet need the engine, which cannot be copied
        return type(self), (self.text, self.tokens, *self.scores)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.text!r}: log_prob={self.log_prob:.4g}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Translation):
            return NotImplemented
        return (self.text, self.tokens, self.scores) == (other.text, other.tokens, other.scores)

    def __hash__(self) -> int:
        return hash((self.text, self.tokens))


@dataclass(frozen=True, slots=True)
class TranslationOptions:
    """How each sentence is translated.

    Attributes:
        search: beam size and length penalty.
        n_best: number of translations of each sentence, at most the beam size.
        sampling: sample one translation instead of searching for the best.
        min_length: least number of tokens, EOS not counted.
        max_length: greatest number of tokens, EOS not counted; by default about twice as many as
            the source has, and 20 more.

    Raises:
        RegardError: if `n_best` or a length is out of range.

    Example:
        >>> TranslationOptions(min_length=3).length_limits(source_length=10).min_length
        3
        >>> TranslationOptions(SearchConfig(beam_size=3), n_best=8)
        Traceback (most recent call last):
        regard.errors.RegardError: n_best must be at most 3, the beam size, but it is 8; give ...
    """

    search: SearchConfig = field(default_factory=SearchConfig)
    n_best: int = 1
    sampling: SamplingConfig | None = None
    min_length: int = 0
    max_length: int | None = None

    def __post_init__(self) -> None:
        if self.n_best < 1:
            raise RegardError(f"n_best must be 1 or more, but it is {self.n_best}")
        if self.max_length is not None and self.max_length < 1:
            raise RegardError(f"max_length must be 1 or more, but it is {self.max_length}")
        if self.min_length < 0:
            raise RegardError(f"min_length must be 0 or more, but it is {self.min_length}")
        if self.max_length is not None and self.min_length > self.max_length:
            raise RegardError(
                f"min_length must be at most max_length={self.max_length}, but it is "
                f"{self.min_length}"
            )
        if self.sampling is not None and self.n_best > 1:
            raise RegardError(
                f"n_best must be 1 with sampling, but it is {self.n_best}; "
                "sample again with another seed"
            )
        if self.n_best > self.search.beam_size:
            raise RegardError(
                f"n_best must be at most {self.search.beam_size}, the beam size, but it is "
                f"{self.n_best}; give beam_size={self.n_best}, too"
            )

    def length_limits(
        self, source_length: int, max_positions: int | None = None, prefix_length: int = 0
    ) -> LengthLimits:
        """Return the limits of the translations of a batch.

        Args:
            source_length: tokens of its longest source.
            max_positions: of the model; None if they are unlimited.
            prefix_length: tokens that the longest prefix may take.

        Raises:
            RegardError: if the prefix or `min_length` exceeds `max_length` or the positions.
        """
        if self.max_length is None:
            max_length = max(max_target_length(source_length), self.min_length, prefix_length)
        else:
            max_length = self.max_length
        limit = f"max_length={max_length} tokens"
        if max_positions is not None and max_length > max_positions - 1:  # BOS takes one position
            max_length = max_positions - 1
            limit = f"{max_length} tokens, as many as the model has positions"
        if prefix_length > max_length:
            raise RegardError(f"prefix must have at most {limit}, but it may take {prefix_length}")
        if self.min_length > max_length:
            raise RegardError(f"min_length must be at most {limit}, but it is {self.min_length}")
        return LengthLimits(min_length=self.min_length, max_length=max_length)


class SentenceBatch(NamedTuple):
    """Sentences of similar length that are decoded together, in plain values.

    Attributes:
        rows: which of the given sentences they are.
        sources: their token ids.
        prefixes: what their translations begin with; empty if none has a prefix.
        numbers: number of each sentence among all that are translated, for sampling.
    """

    rows: list[int]
    sources: list[list[int]]
    prefixes: list[str]
    numbers: list[int]
