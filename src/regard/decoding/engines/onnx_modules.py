"""Modules that `torch.onnx` can trace: encoder and decoder step of each kind of model.

Their inputs and outputs are tensors alone, and nothing in them depends on values.
"""

from collections.abc import Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn

from regard.attention import (
    Additive,
    BeamTree,
    Gaussian,
    KeyValues,
    KVCache,
    MultiHeadAttention,
    Score,
)
from regard.masks import padding
from regard.models import (
    Embedding,
    EncodedSource,
    RecurrentModel,
    RecurrentState,
    Transformer,
    TransformerLayer,
)
from regard.positions import Learned, Sinusoidal, sinusoidal

OPSET = 18  # the first that torch's exporter writes without converting
MAX_POSITIONS = 4096  # of sinusoidal positions, which the graphs keep as a table

DynamicAxes = dict[int, str]
"""Names of the dynamic axes of a tensor."""


class TransformerEncoder(nn.Module):
    """Encodes the source, and makes an empty KV cache for each layer of the decoder."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, source: Tensor, lengths: Tensor) -> list[Tensor]:
        """Return keys and values of the source, then the empty cache."""
        encoded = self.model.encode(source, lengths)
        empty = []
        for layer in self.model.decoder.layers:
            assert isinstance(layer, TransformerLayer)
            shape = (source.shape[0], layer.attention.key_heads, 0, layer.attention.head_width)
            empty += [torch.zeros(shape), torch.zeros(shape)]
        return [*_flatten(encoded.key_values), *empty]


class TransformerStep(nn.Module):
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
        """Return the logits of the next token, then the next state."""
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


class RecurrentEncoder(nn.Module):
    """Encodes the source with ONNX's GRU, which takes lengths as packed sequences do."""

    def __init__(self, model: RecurrentModel) -> None:
        super().__init__()
        self.model = model
        self.layers = nn.ModuleList(
            _GRULayer(model.encoder, number) for number in range(model.encoder.num_layers)
        )

    def forward(self, source: Tensor, lengths: Tensor) -> list[Tensor]:
        """Return keys and values of the source, then the state before the first step."""
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


class RecurrentStep(nn.Module):
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
        """Return the logits of the next token, then the next state."""
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


def traceable_copy(model: Transformer | RecurrentModel) -> Transformer | RecurrentModel:
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
