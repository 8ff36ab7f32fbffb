"""Prefix-constrained decoding of text: outputs that begin with given texts."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.data import Tokenizer

AllowedTokens = Callable[[Tensor, Tensor], Tensor | None]
"""Return which tokens may come next (batch, beam, token), or None if all may.

Called with the batch items (batch) and their tokens so far (batch, beam, position), without BOS.
"""


class _Prefix(NamedTuple):
    tokens: tuple[int, ...]  # of all words but the last
    last_word: bytes  # with its leading space


class TextPrefixes:
    """An `AllowedTokens` that makes the output of each batch item begin with a text.

    The last word of a text may be completed: after "le ch" may come "at", even where " chat" is
    one token. So the tokens of that word are not forced; any that spell it are allowed, and the
    last of them may extend beyond it. The words before it are forced as the tokenizer encodes them.

    Args:
        tokenizer: of the target.
        texts: one for each batch item; an empty one forces nothing.
        device: of the search.
    """

    def __init__(
        self, tokenizer: Tokenizer, texts: Sequence[str], device: torch.device | str = "cpu"
    ) -> None:
        self._tokenizer = tokenizer
        self._prefixes = [_Prefix(*tokenizer.encode_prefix(text)) for text in texts]
        self._device = device
        self._masks: dict[bytes, Tensor] = {}  # tokens that spell some bytes, or begin with them

    @property
    def max_length(self) -> int:
        """Greatest number of tokens that a prefix takes, if its last word is spelled in bytes."""
        lengths = (len(prefix.tokens) + len(prefix.last_word) for prefix in self._prefixes)
        return max(lengths, default=0)

    def __call__(
        self, items: Int[Tensor, " batch"], tokens: Int[Tensor, "batch beam position"]
    ) -> Bool[Tensor, "batch beam token"] | None:
        """Return the tokens that may come next; None if no prefix is left."""
        if tokens.shape[-1] >= self.max_length:
            return None
        prefixes = [self._prefixes[item] for item in items.tolist()]
        rows = [
            torch.stack([self._allowed(prefix, beam) for beam in beams])
            for prefix, beams in zip(prefixes, tokens.tolist(), strict=True)
        ]
        return torch.stack(rows)

    def _allowed(self, prefix: _Prefix, tokens: list[int]) -> Bool[Tensor, " token"]:
        """Return the tokens that may continue one beam."""
        if len(tokens) < len(prefix.tokens):
            mask = torch.zeros(len(self._tokenizer), dtype=torch.bool, device=self._device)
            mask[prefix.tokens[len(tokens)]] = True
            return mask
        written = self._tokenizer.to_bytes(tokens[len(prefix.tokens) :])
        return self._spelling(prefix.last_word[len(written) :])

    def _spelling(self, rest: bytes) -> Bool[Tensor, " token"]:
        """Return the tokens that begin with some bytes, or that the bytes begin with."""
        if rest not in self._masks:
            mask = torch.full((len(self._tokenizer),), not rest, device=self._device)
            if rest:
                mask[self._tokenizer.tokens_that_spell(rest)] = True
            self._masks[rest] = mask
        return self._masks[rest]
