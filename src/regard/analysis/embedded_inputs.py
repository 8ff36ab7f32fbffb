"""What a model reads as vectors: embeddings of token ids, or inputs that are vectors."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from regard.analysis.output_scores import batch_first
from regard.errors import RegardError, wrong_type

# integer inputs of Hugging Face models that are no tokens
_NO_TOKENS = {"attention_mask", "decoder_attention_mask", "token_type_ids", "position_ids"}
_NO_TOKENS |= {"labels", "head_mask", "decoder_position_ids"}

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def to_arguments(inputs: Any) -> Arguments:
    """Return the positional and keyword arguments that a model is called with."""
    if isinstance(inputs, str):
        raise wrong_type(
            "inputs",
            "what the model is called with, such as tokenizer(text, return_tensors='pt')",
            inputs,
        )
    if isinstance(inputs, Mapping) or hasattr(inputs, "keys"):
        return (), {name: inputs[name] for name in inputs.keys()}  # noqa: SIM118
    if isinstance(inputs, tuple | list):
        return tuple(inputs), {}
    return (inputs,), {}


class EmbeddedInputs(TorchFunctionMode):
    """A torch function mode that scales what a model reads, and keeps it for gradients.

    Token ids are recognised by their first embedding lookup, also transposed; what is scaled is the
    result of the `nn.Embedding` that looks them up, which may do more, such as normalise vectors.
    Floating-point inputs (batch, position, width) or (position, batch, width) are read as they are;
    those that a convolution reads at once are (batch, channel, position), as spectrograms. Masks
    and biases are not scaled.

    Args:
        model: the model, whose forward method names its arguments.
        arguments: what the model is called with.
        share: factor of the vectors, from 0 (the baseline) to 1 (the vectors themselves).
        baseline: token whose embedding stands for "no information"; None for zeros.

    Attributes:
        batch_size: of the model's attention, which tells the axis of the batch; set after a pass.
    """

    def __init__(
        self,
        model: nn.Module,
        arguments: Arguments,
        share: float = 1.0,
        baseline: int | None = None,
    ) -> None:
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
        self._embeddings = [x for x in model.modules() if _is_own_embedding(x)]
        self._looked_up: dict[int, tuple[str, Tensor]] = {}  # by the table of such a module
        self.batch_size = 1
        self._channels_first: set[str] = set()  # inputs (batch, channel, position)
        self.vectors: dict[str, Tensor] = {}  # leaves of the model's graph
        self._read: dict[str, Tensor] = {}  # copies, which a model may change in place
        self.distances: dict[str, Tensor] = {}  # from the baseline to the full vectors
        parameters = _parameter_names(model)
        scaled = {
            name: self._scale(name, x, None)
            for name, x in tensors.items()
            if x.is_floating_point() and not _is_mask(parameters.get(name, name), x)
        }
        self.arguments: Arguments = (
            tuple(scaled.get(str(n), x) for n, x in enumerate(positional)),
            {name: scaled.get(name, x) for name, x in named.items()},
        )

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Enter the mode, and observe the embeddings that do more than look up vectors."""
        hooks = [x.register_forward_hook(self._after_embedding) for x in self._embeddings]
        try:
            with self:
                yield
        finally:
            for hook in hooks:
                hook.remove()

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
        function = getattr(func, "__name__", "")
        if function == "conv1d" and args:
            self._channels_first |= {n for n, x in self._read.items() if x is args[0]}
        if function != "embedding" or not args:
            return out
        name = self._name_of(args[0])
        if name is None:
            return out
        if len(args) > 1 and any(args[1] is x.weight for x in self._embeddings):
            self._looked_up[id(args[1])] = name, args[0]
            return out
        baseline = None
        if self._baseline is not None:
            ids = torch.full_like(args[0], self._baseline)
            baseline = func(ids, *args[1:], **kwargs)
        return self._scale(name, out, baseline)

    def _after_embedding(self, module: nn.Module, args: tuple[Any, ...], out: Any) -> Any:
        """Replace what a module has made of the first embeddings of an input."""
        known = self._looked_up.pop(id(module.weight), None)
        if known is None or known[0] in self.vectors or not isinstance(out, Tensor):
            return None
        name, ids = known
        baseline = None
        if self._baseline is not None:
            baseline = module.forward(torch.full_like(ids, self._baseline), *args[1:])
            self._looked_up.clear()
        return self._scale(name, out, baseline)

    def _name_of(self, ids: Any) -> str | None:
        """Return the name of the input whose ids are looked up for the first time."""
        if not isinstance(ids, Tensor):
            return None
        for name, known in self._ids.items():
            known = known.to(ids.device)
            if name not in self.vectors and (torch.equal(ids, known) or torch.equal(ids, known.T)):
                return name
        return None

    def _scale(self, name: str, vectors: Tensor, baseline: Tensor | None) -> Tensor:
        full = vectors.detach().clone()
        start = torch.zeros_like(full) if baseline is None else baseline.detach()
        self.distances[name] = full - start
        self.vectors[name] = (start + self._share * self.distances[name]).requires_grad_()
        self._read[name] = self.vectors[name].clone()
        return self._read[name]

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
                    f"has shape {tuple(value.shape)}; 'chefer' attributes to the positions that "
                    "attention reads"
                )
        return {
            name: value[batch_index].sum(0)
            if name in self._channels_first
            else batch_first(value, self.batch_size)[batch_index].sum(-1)
            for name, value in values.items()
        }


def _is_own_embedding(module: nn.Module) -> bool:
    """Return whether a module is an embedding with a forward method of its own."""
    is_embedding = isinstance(module, nn.Embedding)
    return is_embedding and type(module).forward is not nn.Embedding.forward


def _parameter_names(model: nn.Module) -> dict[str, str]:
    """Return the names of a model's arguments by their positions."""
    return {str(n): name for n, name in enumerate(inspect.signature(model.forward).parameters)}


def _is_mask(name: str, tensor: Tensor) -> bool:
    """Return whether an input is a mask or bias of scores, by its name or by what it holds."""
    lowest = torch.finfo(tensor.dtype).min / 2
    return "mask" in name or "bias" in name or bool((tensor <= lowest).any())
