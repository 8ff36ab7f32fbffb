"""The vectors that a model reads: embeddings of its token ids, or its floating-point inputs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from regard.errors import RegardError

# integer inputs of Hugging Face models that are no tokens
_NO_TOKENS = {"attention_mask", "decoder_attention_mask", "token_type_ids", "position_ids"}
_NO_TOKENS |= {"labels", "head_mask", "decoder_position_ids"}

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def to_arguments(inputs: Any) -> Arguments:
    """Return the positional and keyword arguments that a model is called with."""
    if isinstance(inputs, Mapping) or hasattr(inputs, "keys"):
        return (), {name: inputs[name] for name in inputs.keys()}  # noqa: SIM118
    if isinstance(inputs, tuple | list):
        return tuple(inputs), {}
    return (inputs,), {}


class EmbeddedInputs(TorchFunctionMode):
    """A torch function mode that scales what a model reads, and keeps it for gradients.

    Token ids are recognised by their first embedding lookup. Floating-point inputs (batch,
    position, width) are read as they are.

    Args:
        arguments: what the model is called with.
        share: factor of the vectors, from 0 (the baseline) to 1 (the vectors themselves).
        baseline: token whose embedding stands for "no information"; None for zeros.
    """

    def __init__(self, arguments: Arguments, share: float = 1.0, baseline: int | None = None):
        super().__init__()
        positional, named = arguments
        self._share, self._baseline = share, baseline
        items = [*((str(n), x) for n, x in enumerate(positional)), *named.items()]
        tensors = {name: x for name, x in items if isinstance(x, Tensor)}
        self._ids = {
            name: x
            for name, x in tensors.items()
            if name not in _NO_TOKENS and not x.is_floating_point() and x.ndim == 2
        }
        self.vectors: dict[str, Tensor] = {}  # as the model reads them, leaves of its graph
        self.distances: dict[str, Tensor] = {}  # from the baseline to the full vectors
        scaled = {n: self._scale(n, x, None) for n, x in tensors.items() if x.is_floating_point()}
        self.arguments: Arguments = (
            tuple(scaled.get(str(n), x) for n, x in enumerate(positional)),
            {name: scaled.get(name, x) for name, x in named.items()},
        )

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run a torch function; replace the first embeddings of each input."""
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if getattr(func, "__name__", "") != "embedding" or not args:
            return out
        name = self._name_of(args[0])
        if name is None:
            return out
        baseline = None
        if self._baseline is not None:
            ids = torch.full_like(args[0], self._baseline)
            baseline = func(ids, *args[1:], **kwargs)
        return self._scale(name, out, baseline)

    def _name_of(self, ids: Any) -> str | None:
        """Return the name of the input whose ids are looked up for the first time."""
        for name, known in self._ids.items():
            is_same = isinstance(ids, Tensor) and ids.shape == known.shape
            if name not in self.vectors and is_same and torch.equal(ids, known.to(ids.device)):
                return name
        return None

    def _scale(self, name: str, vectors: Tensor, baseline: Tensor | None) -> Tensor:
        full = vectors.detach().clone()
        start = torch.zeros_like(full) if baseline is None else baseline.detach()
        self.distances[name] = full - start
        self.vectors[name] = (start + self._share * self.distances[name]).requires_grad_()
        return self.vectors[name]

    def per_position(self, values: dict[str, Tensor], batch_index: int) -> dict[str, Tensor]:
        """Sum values of the shape of the vectors over the width: one number per position.

        Raises:
            RegardError: if there are no vectors, or some are not (batch, position, width).
        """
        if not values:
            raise RegardError(
                "inputs must be token ids (batch, position) that an embedding reads, or vectors "
                "(batch, position, width), but there are none"
            )
        for name, value in values.items():
            if value.ndim != 3:
                raise RegardError(
                    f"inputs must be token ids or vectors (batch, position, width), but {name!r} "
                    f"has shape {tuple(value.shape)}; 'chefer' attributes to the tokens of an image"
                )
        return {name: value[batch_index].sum(-1) for name, value in values.items()}
