"""The numbers that are not words, and what a batch of numbers must be."""

import torch
from torch import Tensor

PADDING, START, END, UNKNOWN = range(4)


def check_tokens(name: str, tokens: Tensor, vocabulary: int, lengths: Tensor | None = None) -> None:
    """Refuse numbers beyond the vocabulary, and sentences without words."""
    if tokens.ndim != 2 or tokens.is_floating_point():
        raise ValueError(
            f"{name} must be whole numbers (batch, position), but they are {tokens.dtype} "
            f"of shape {tuple(tokens.shape)}"
        )
    if torch.compiler.is_compiling():
        return
    if tokens.numel():
        low, high = (int(end) for end in tokens.aminmax())
        if low < 0 or high >= vocabulary:
            raise ValueError(
                f"{name} must be numbers from 0 to {vocabulary - 1}, the vocabulary's last, "
                f"but one is {low if low < 0 else high}"
            )
    if lengths is not None:
        _check_lengths(name, tokens, lengths)


def _check_lengths(name: str, tokens: Tensor, lengths: Tensor) -> None:
    if lengths.shape != tokens.shape[:1]:
        raise ValueError(
            f"lengths must be one per sentence, {len(tokens)}, but their shape is "
            f"{tuple(lengths.shape)}"
        )
    for number, length in enumerate(lengths.tolist()):
        if not 1 <= length <= tokens.shape[1]:
            raise ValueError(
                f"{name} must have from 1 to {tokens.shape[1]} words in each sentence, "
                f"but sentence {number} has {length}"
            )
