"""Selection of the outputs of a model that are attributed."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from regard.errors import RegardError

Target = int | tuple[int, int] | Callable[[Any], Tensor] | None
"""A class, (position, token), a function of the output, or the highest logit."""


def select_scores(output: Any, target: Target, batch_index: int, batch_size: int) -> Tensor:
    """Return the outputs to attribute, (row,), of one item of a batch.

    Raises:
        RegardError: if the output has no such element.
    """
    if callable(target):
        scores = target(output)
        if not isinstance(scores, Tensor) or scores.ndim > 1 or not scores.requires_grad:
            raise RegardError(
                "target must return a scalar or a vector computed from the model's output, but it "
                f"returned {_describe(scores)}"
            )
        return scores.reshape(-1)
    logits = output if isinstance(output, Tensor) else getattr(output, "logits", None)
    if not isinstance(logits, Tensor) or logits.ndim not in (2, 3):
        raise RegardError(
            "the model must return logits (batch, class) or (batch, position, token), but it "
            f"returned {_describe(output)}; pass a function of the output as target="
        )
    item = batch_first(logits, batch_size)[batch_index]
    if target is None:
        return item.amax(-1).reshape(-1)
    index = (target,) if isinstance(target, int) else tuple(target)
    fits = len(index) == item.ndim and all(
        -size <= n < size for n, size in zip(index, item.shape, strict=True)
    )
    if not fits:
        expected = "a class" if item.ndim == 1 else "(position, token)"
        raise RegardError(
            f"target must be {expected} within {tuple(item.shape)}, but it is {target!r}"
        )
    return item[index].reshape(1)


def batch_first(tensor: Tensor, batch_size: int) -> Tensor:
    """Return (batch, position, …), also of (position, batch, …), torch's default for its layers."""
    is_second = tensor.ndim == 3 and tensor.shape[0] != batch_size == tensor.shape[1]
    return tensor.transpose(0, 1) if is_second else tensor


def _describe(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return f"a {type(value).__name__}"
