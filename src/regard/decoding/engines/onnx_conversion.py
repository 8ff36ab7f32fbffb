"""Conversion of a translation model to two ONNX graphs: the encoder, and one step of the decoder.

`encoder.onnx` maps `source` (batch, source) and `lengths` (batch) to everything that the decoder
reads: keys and values of the source for every layer (`source_keys_0`, `source_values_0`, …) and
the state before the first step. `decoder.onnx` maps `tokens` (batch), `lengths`, these keys and
values and the state to `logits` (batch, token) and the next state. The state of a Transformer is
its KV cache (`keys_0`, `values_0`, …), empty at first; that of a recurrent model is `hidden`. Each
output `next_keys_0` is the input `keys_0` of the next step. Batch size and lengths are dynamic.
"""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard._support.extras import needs_extra
from regard.attention import (
    Additive,
    BeamTree,
    Gaussian,
    KeyValues,
    KVCache,
    MultiHeadAttention,
    Score,
)
from regard.errors import RegardError
from regard.masks import padding
from regard.models import (
    Embedding,
    EncodedSource,
    RecurrentModel,
    RecurrentState,
    Seq2SeqModel,
    Transformer,
    TransformerLayer,
)
from regard.positions import Learned, Sinusoidal, sinusoidal

ENCODER, DECODER = "encoder.onnx", "decoder.onnx"
MAX_POSITIONS = 4096  # of sinusoidal positions, which the graphs keep as a table
OPSET = 18  # the first that torch's exporter writes without converting

DynamicAxes = dict[int, str]
"""Names of the dynamic axes of a tensor."""


def save_onnx(model: Seq2SeqModel, folder: Path) -> dict[str, str]:
    """Write a model as two ONNX graphs, `encoder.onnx` and `decoder.onnx`, in float32.

    Args:
        model: a Transformer or a recurrent model, with any score and positions.
        folder: an existing folder.

    Returns:
        The inputs that the decoder takes from the encoder's outputs, with their shapes.

    Raises:
        RegardError: if the model is of another kind.
        MissingExtraError: if onnx or onnxscript is not installed.
    """
    if not isinstance(model, Transformer | RecurrentModel):
        raise RegardError(
            f"ONNX export needs a Transformer or a RecurrentModel, but it is a "
            f"{type(model).__name__}"
        )
    with needs_extra("onnx", "ONNX export needs"):
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    model = _traceable_copy(model)
    encoder: _TransformerEncoder | _RecurrentEncoder
    decoder: _TransformerStep | _RecurrentStep
    if isinstance(model, Transformer):
        encoder, decoder = _TransformerEncoder(model), _TransformerStep(model)
    else:
        encoder, decoder = _RecurrentEncoder(model), _RecurrentStep(model)
    # sizes above 1, which the exporter takes for constants
    source, lengths = torch.ones(2, 3, dtype=torch.long), torch.tensor([3, 2])
    with torch.no_grad():
        outputs = encoder(source, lengths)
        count = len(decoder.source_names)
        source_tensors, state = outputs[:count], [decoder.example(x) for x in outputs[count:]]
    _export(
        encoder,
        {"source": source, "lengths": lengths},
        {"source": {0: "batch", 1: "source"}, "lengths": {0: "batch"}},
        [*decoder.source_names, *decoder.state_names],
        folder / ENCODER,
    )
    _export(
        decoder,
        {
            "tokens": torch.ones(2, dtype=torch.long),
            "lengths": lengths,
            "source": source_tensors,
            "state": state,
        },
        {
            "tokens": {0: "batch"},
            "lengths": {0: "batch"},
            "source": [decoder.source_axes] * count,
            "state": [decoder.state_axes] * len(state),
        },
        ["logits", *(f"next_{name}" for name in decoder.state_names)],
        folder / DECODER,
        ["tokens", "lengths", *decoder.source_names, *decoder.state_names],
    )
    shapes = [_shape(each, decoder.source_axes) for each in source_tensors]
    shapes += [_shape(each, decoder.state_axes) for each in state]
    return dict(zip([*decoder.source_names, *decoder.state_names], shapes, strict=True))


def _shape(tensor: Tensor, axes: DynamicAxes) -> str:
    return ", ".join(str(axes.get(axis, size)) for axis, size in enumerate(tensor.shape))


class _TransformerEncoder(nn.Module):
    """Encodes the source, and makes an empty KV cache for each layer of the decoder."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, source: Tensor, lengths: Tensor) -> list[Tensor]:
        encoded = self.model.encode(source, lengths)
        empty = []
        for layer in self.model.decoder.layers:
            assert isinstance(layer, TransformerLayer)
            shape = (source.shape[0], layer.attention.key_heads, 0, layer.attention.head_width)
            empty += [torch.zeros(shape), torch.zeros(shape)]
        return [*_flatten(encoded.key_values), *empty]


class _TransformerStep(nn.Module):
    """One step of a Transformer's decoder, whose position is the length of the KV cache."""

    source_axes: DynamicAxes = {0: "batch", 2: "source"}  # noqa: RUF012
    state_axes: DynamicAxes = {0: "batch", 2: "past"}  # noqa: RUF012

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model
        layers = [layer for layer in model.decoder.layers if isinstance(layer, TransformerLayer)]
        self.source_names = _names("source_", sum(layer.cross is not None for layer in layers))
        self.state_names = _names("", len(layers))

    @staticmethod
    def example(tensor: Tensor) -> Tensor:
        """Return a cache of some steps, in place of the empty one."""
        return tensor.new_zeros(*tensor.shape[:2], 5, tensor.shape[-1])

    def forward(
        self, tokens: Tensor, lengths: Tensor, source: list[Tensor], state: list[Tensor]
    ) -> list[Tensor]:
        model, steps = self.model, state[0].shape[-2]
        key_values = iter(_pair(source))
        mask = _source_mask(source, lengths)
        # one beam for each batch item: it sees all keys, and its cache holds no others
        visible = torch.ones(tokens.shape[0], 1, steps + 1, dtype=torch.bool)
        positions = torch.arange(steps + 1).expand(tokens.shape[0], -1)
        tree = BeamTree(visible, positions, steps + 1)
        states = model.target_embedding(tokens[:, None], steps)
        next_state: list[Tensor] = []
        for layer, past in zip(model.decoder.layers, _pair(state), strict=True):
            assert isinstance(layer, TransformerLayer)
            memory = None if layer.cross is None else next(key_values)
            states, cache = layer.step(states, _PastCache(past), tree, memory, padding(mask))
            next_state += [cache.keys, cache.values]
        if model.decoder.norm is not None:
            states = model.decoder.norm(states)
        return [model.logits(states[:, 0]), *next_state]


class _PastCache(KVCache):
    """Keys and values so far, whose number is unknown when the graph is traced."""

    def __init__(self, past: KeyValues) -> None:
        super().__init__()
        self._past = past

    def __len__(self) -> int:
        return 0  # `len` must be a constant; only masks by position would need it

    def extend(self, keys: Tensor, values: Tensor) -> KVCache:
        past = self._past
        return KVCache(torch.cat([past.keys, keys], -2), torch.cat([past.values, values], -2))


class _RecurrentEncoder(nn.Module):
    """Encodes the source with ONNX's GRU, which takes lengths as packed sequences do."""

    def __init__(self, model: RecurrentModel) -> None:
        super().__init__()
        self.model = model
        self.layers = nn.ModuleList(
            _GRULayer(model.encoder, number) for number in range(model.encoder.num_layers)
        )

    def forward(self, source: Tensor, lengths: Tensor) -> list[Tensor]:
        model = self.model
        states = model.source_embedding(source).transpose(0, 1)
        backward = []
        for layer in self.layers:
            states, last = layer(states, lengths)
            backward.append(last[1])
        states = states.transpose(0, 1)
        hidden = torch.tanh(model.init_projection(torch.stack(backward)))
        project = model.key_projection or model.score.project_keys
        return [project(states), states, hidden]


class _GRULayer(nn.Module):
    """One bidirectional layer of torch's GRU as an ONNX operator.

    torch's exporter would unroll the GRU, or take another variant of it than torch computes
    (https://github.com/pytorch/pytorch/issues/189225).
    """

    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor
    bias_hh: Tensor

    def __init__(self, gru: nn.GRU, number: int) -> None:
        super().__init__()
        self.width = gru.hidden_size
        names = [f"l{number}{suffix}" for suffix in ("", "_reverse")]
        for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            both = torch.stack([_reset_last(getattr(gru, f"{part}_{name}")) for name in names])
            self.register_buffer(part, both)

    def forward(self, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Map (position, batch, width) to both directions' states and their last ones."""
        length, batch, _ = inputs.shape
        states, last = torch.onnx.ops.symbolic_multi_out(
            "GRU",
            [
                inputs,
                self.weight_ih,
                self.weight_hh,
                torch.cat([self.bias_ih, self.bias_hh], dim=1),
                lengths.to(torch.int32),
            ],
            {"hidden_size": self.width, "direction": "bidirectional", "linear_before_reset": 1},
            dtypes=[inputs.dtype, inputs.dtype],
            shapes=[(length, 2, batch, self.width), (2, batch, self.width)],
            version=OPSET,
        )
        return states.transpose(1, 2).flatten(2), last


def _reset_last(rows: Tensor) -> Tensor:
    """Reorder the gates: torch has reset, update, new; ONNX has update, reset, new."""
    reset, update, new = rows.detach().chunk(3)
    return torch.cat([update, reset, new])


class _StepGRU(nn.Module):
    """One step of torch's GRU, in matrix products; see `_GRULayer`."""

    def __init__(self, gru: nn.GRU) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        for number in range(gru.num_layers):
            cell = nn.GRUCell(getattr(gru, f"weight_ih_l{number}").shape[1], gru.hidden_size)
            for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                setattr(cell, part, getattr(gru, f"{part}_l{number}"))
            self.layers.append(cell)

    def forward(self, inputs: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Map (row, 1, width) and (layer, row, width) to the output and the next hidden state."""
        states, after = inputs[:, 0], []
        for cell, own in zip(self.layers, hidden.unbind(), strict=True):
            states = cell(states, own)
            after.append(states)
        return states[:, None], torch.stack(after)


class _RecurrentStep(nn.Module):
    """One step of a recurrent model's decoder."""

    source_axes: DynamicAxes = {0: "batch", 1: "source"}  # noqa: RUF012
    state_axes: DynamicAxes = {1: "batch"}  # noqa: RUF012

    def __init__(self, model: RecurrentModel) -> None:
        super().__init__()
        self.model = deepcopy(model)
        self.model.decoder = _StepGRU(self.model.decoder)  # type: ignore[assignment]
        self.source_names = _names("source_", 1)
        self.state_names = ["hidden"]

    @staticmethod
    def example(tensor: Tensor) -> Tensor:
        """Return the hidden state as it is."""
        return tensor

    def forward(
        self, tokens: Tensor, lengths: Tensor, source: list[Tensor], state: list[Tensor]
    ) -> list[Tensor]:
        encoded = EncodedSource(tuple(_pair(source)), _source_mask(source, lengths), state[0])
        states, after = self.model.step(tokens[:, None], RecurrentState(state[0], encoded))
        return [self.model.logits(states[:, 0]), after.hidden]


def _source_mask(source: Sequence[Tensor], lengths: Tensor) -> Tensor:
    return torch.arange(source[0].shape[-2]) < lengths[:, None]


def _names(prefix: str, layers: int) -> list[str]:
    return [f"{prefix}{kind}_{n}" for n in range(layers) for kind in ("keys", "values")]


def _flatten(pairs: Sequence[KeyValues]) -> list[Tensor]:
    return [tensor for pair in pairs for tensor in pair]


def _pair(tensors: Sequence[Tensor]) -> list[KeyValues]:
    return [KeyValues(*pair) for pair in zip(tensors[::2], tensors[1::2], strict=True)]


class _TanhSum(Score):
    """score(a, b) = v·tanh(a + b), as `Additive` defines it, without tiles."""

    v: Tensor

    def __init__(self, v: Tensor) -> None:
        super().__init__()
        self.register_buffer("v", v.detach())

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Score every projected query against every projected key."""
        return torch.tanh(queries[..., :, None, :] + keys[..., None, :, :]) @ self.v


class _Gaussian(Score):
    """score(q, k) = -|q - k|² / 2b², as `Gaussian` defines it, from the differences themselves."""

    bandwidth: Tensor

    def __init__(self, bandwidth: Tensor) -> None:
        super().__init__()
        self.register_buffer("bandwidth", bandwidth.detach())

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Score every query against every key."""
        differences = (queries[..., :, None, :] - keys[..., None, :, :]) / self.bandwidth
        return -0.5 * differences.square().sum(dim=-1)


def _traceable_copy(model: Transformer | RecurrentModel) -> Transformer | RecurrentModel:
    """Return a copy on the CPU without what depends on values, or what ONNX has no operator for.

    Sinusoidal positions become a table, as learned ones are.
    """
    model = deepcopy(model).cpu().float().eval()
    for module in list(model.modules()):
        if isinstance(module, Additive):
            module.tanh_sum = _TanhSum(module.tanh_sum.v)  # type: ignore[assignment]
        has_score = isinstance(module, MultiHeadAttention | RecurrentModel)
        if has_score and isinstance(module.score, Gaussian):
            module.score = _Gaussian(module.score.bandwidth)
        if isinstance(module, Embedding) and isinstance(waves := module.positions, Sinusoidal):
            table = Learned(MAX_POSITIONS, module.width)
            table.table.data = sinusoidal(MAX_POSITIONS, module.width, base=waves.base)
            module.positions = table
    return model


def _export(
    module: nn.Module,
    inputs: dict[str, Any],
    axes: dict[str, Any],
    output_names: Sequence[str],
    path: Path,
    input_names: Sequence[str] | None = None,
) -> None:
    """Trace a module and write its graph."""
    with torch.no_grad(), _silent():
        program = torch.onnx.export(
            module.eval(),
            kwargs=inputs,
            dynamic_shapes=axes,
            input_names=list(inputs if input_names is None else input_names),
            output_names=list(output_names),
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
        assert program is not None
        program.save(str(path))


@contextmanager
def _silent() -> Iterator[None]:
    """Hide what the exporter warns of: libraries that are not installed, axes of equal names."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
