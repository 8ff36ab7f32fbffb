"""Attribution to what a model reads: gradient × input, and integrated gradients."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from regard.analysis.output_scores import batch_first
from regard.errors import RegardError, wrong_type
from regard.trace import Array, AttentionMap, TokenList, Trace

# integer inputs of Hugging Face models that are no tokens
_NO_TOKENS = {"attention_mask", "decoder_attention_mask", "token_type_ids", "position_ids"}
_NO_TOKENS |= {"labels", "head_mask", "decoder_position_ids"}

Arguments = tuple[tuple[Any, ...], dict[str, Any]]

OUTPUT = "output"  # token list of a single output


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

    Token ids are recognised by their first embedding lookup, also transposed. Floating-point inputs
    (batch, position, width) or (position, batch, width) are read as they are; those that a
    convolution reads at once are (batch, channel, position), as spectrograms.

    Args:
        arguments: what the model is called with.
        share: factor of the vectors, from 0 (the baseline) to 1 (the vectors themselves).
        baseline: token whose embedding stands for "no information"; None for zeros.

    Attributes:
        batch_size: of the model's attention, which tells the axis of the batch; set after a pass.
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
        self.batch_size = 1
        self._channels_first: set[str] = set()  # inputs (batch, channel, position)
        self.vectors: dict[str, Tensor] = {}  # leaves of the model's graph
        self._read: dict[str, Tensor] = {}  # copies, which a model may change in place
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
        function = getattr(func, "__name__", "")
        if function == "conv1d" and args:
            self._channels_first |= {n for n, x in self._read.items() if x is args[0]}
        if function != "embedding" or not args:
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


def gradient_x_input(
    scores: Tensor, embedded: EmbeddedInputs, batch_index: int
) -> dict[str, Array]:
    """Return gradient × input, (row, position) of each input."""
    embedded.per_position(embedded.distances, batch_index)  # raises if there are none
    names = list(embedded.vectors)
    values_by_name: dict[str, list[Array]] = {name: [] for name in names}
    for score in scores:
        gradients = torch.autograd.grad(
            score, list(embedded.vectors.values()), retain_graph=True, allow_unused=True
        )
        products = {
            name: embedded.distances[name] * (0.0 if gradient is None else gradient)
            for name, gradient in zip(names, gradients, strict=True)
        }
        for name, value in embedded.per_position(products, batch_index).items():
            values_by_name[name].append(value.detach().double().cpu().numpy())
    return {name: np.stack(values) for name, values in values_by_name.items()}


def integrate(
    run_at: Callable[[float], tuple[Tensor, EmbeddedInputs]], steps: int, batch_index: int
) -> dict[str, Array]:
    """Integrate gradient × distance from the baseline, by Gauss-Legendre quadrature."""
    if steps < 1:
        raise RegardError(f"steps must be 1 or more, but it is {steps}")
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    total: dict[str, Array] = {}
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        for name, value in gradient_x_input(*run_at(float(node)), batch_index).items():
            total[name] = total.get(name, 0) + weight * value
    return total


def build_input_trace(trace: Trace, method: str, values: dict[str, Array]) -> Trace:
    """Return signed attributions as two maps for each input: for and against the output."""
    tokens, maps = dict(trace.tokens), []
    rows = next(iter(values.values())).shape[0]
    last = trace.maps[-1]
    queries = last.queries if rows > 1 and rows == len(tokens[last.queries]) else OUTPUT
    if queries == OUTPUT:
        names = (OUTPUT,) if rows == 1 else tuple(str(n) for n in range(rows))
        tokens[OUTPUT] = TokenList(names)
    for n, (name, value) in enumerate(values.items()):
        keys = _input_list(trace, name, n, len(values), value.shape[1])
        tokens.setdefault(keys, TokenList(tuple(str(i) for i in range(value.shape[1]))))
        for sign, side in ((1, "for"), (-1, "against")):
            weights = np.maximum(sign * value, 0)[None].astype(np.float32)
            maps.append(
                AttentionMap(
                    name=f"{method}, {side} the output",
                    kind="cross",
                    queries=queries,
                    keys=keys,
                    weights=weights,
                )
            )
    return replace(trace, tokens=tokens, maps=tuple(maps))


def _input_list(trace: Trace, name: str, index: int, count: int, length: int) -> str:
    """Return the token list of an input: of the decoder if it is named so, or the second of two."""
    is_decoder = name.startswith("decoder") or (count > 1 and index == 1)
    candidates = ("decoder_input", "target") if is_decoder else ("source", "text", *trace.tokens)
    for candidate in candidates:
        if candidate in trace.tokens and len(trace.tokens[candidate]) == length:
            return candidate
    return f"input {name}"
