"""Heads around any score: several attentions side by side, each in a space of its own."""

from typing import Any

import torch
from einops import rearrange
from torch import Tensor, nn

from regard.attention.axes import Axes
from regard.attention.beam_cache import BeamTree
from regard.attention.call import prepare_bias
from regard.attention.functional import AttentionOutput, attend, look
from regard.attention.kv_cache import KeyValues, KVCache
from regard.attention.scores.registry import Score, make_score
from regard.masks.base import Mask
from regard.masks.positional import causal
from regard.positions import ALiBi, Rotary


class MultiHeadAttention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017, section 3.2.2) around any score.

    `attention(x)` is self-attention, `attention(x, y)` looks from x at y. With fewer
    `key_heads` than heads, query head h reads key head h // (heads / key_heads).

    Args:
        width: of the queries, and of the result.
        head_width: of one head; width / heads by default.
        key_width: of the keys that come in, if it differs from the queries'.
        value_width: of the values that come in, if it differs from the keys'.
        positions: Rotary turns queries and keys, ALiBi adds to the scores.
    """

    def __init__(
        self,
        width: int,
        heads: int = 8,
        *,
        score: str | Score = "scaled_dot",
        key_heads: int | None = None,
        head_width: int | None = None,
        key_width: int | None = None,
        value_width: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        positions: Rotary | ALiBi | None = None,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.key_heads = heads if key_heads is None else key_heads
        _check_heads(width, heads, self.key_heads, head_width)
        self.head_width = head_width or width // heads
        self.query = nn.Linear(width, heads * self.head_width, bias)
        self.key = nn.Linear(key_width or width, self.key_heads * self.head_width, bias)
        self.value = nn.Linear(
            value_width or key_width or width, self.key_heads * self.head_width, bias
        )
        self.out = nn.Linear(heads * self.head_width, width, bias)
        for projection in (self.query, self.key, self.value, self.out):
            nn.init.xavier_uniform_(projection.weight)
            if bias:
                nn.init.zeros_(projection.bias)
        widths = (self.head_width, self.head_width)
        self.score = make_score(score, widths) if isinstance(score, str) else score
        self.dropout = dropout
        self.positions = positions

    def forward(
        self,
        queries: Tensor,
        keys: Tensor | KeyValues | None = None,
        values: Tensor | None = None,
        *,
        mask: Mask | Tensor | None = None,
        bias: Tensor | None = None,
    ) -> Tensor:
        """Attend with every head, and join what they gathered."""
        axes = Axes.of(queries, keys)
        looking, memory = self._looking(queries, axes), self._memory(queries, keys, values, axes)
        context = attend(looking, *memory, mask=mask, **self._settings(looking, memory, bias))
        return axes.drop(self._joined(context))

    def look(
        self,
        queries: Tensor,
        keys: Tensor | KeyValues | None = None,
        values: Tensor | None = None,
        *,
        mask: Mask | Tensor | None = None,
        bias: Tensor | None = None,
    ) -> AttentionOutput:
        """Attend, and tell where: weights are per head, (batch, head, query, key), undropped."""
        axes = Axes.of(queries, keys)
        looking, memory = self._looking(queries, axes), self._memory(queries, keys, values, axes)
        context, looks = look(looking, *memory, mask=mask, **self._settings(looking, memory, bias))
        return AttentionOutput(axes.drop(self._joined(context)), axes.drop(looks))

    def project_kv(
        self, keys: Tensor, values: Tensor | None = None, offset: int | Tensor = 0
    ) -> KeyValues:
        """Project keys and values once, to be looked at again and again in place of keys.

        Args:
            offset: the position of the first key, or a tensor of every key's.
        """
        split = self._parted("keys", self.key, keys, offset)
        project = getattr(self.score, "project_keys", None)
        values = keys if values is None else values
        return KeyValues(
            split if project is None else project(split),
            self._parted("values", self.value, values),
        )

    def step(
        self, queries: Tensor, cache: KVCache, *, mask: Mask | Tensor | None = None
    ) -> tuple[Tensor, KVCache]:
        """Attend from new positions to themselves and all before; return the longer cache too.

        The mask speaks of all keys so far and is causal by default.
        """
        offset = len(cache)
        cache = cache.extend(*self.project_kv(queries, offset=offset))
        memory = KeyValues(cache.keys, cache.values)
        looking = self._looking(queries, Axes(), offset)
        settings = self._settings(looking, memory, None, offset)
        context = attend(looking, *memory, mask=causal() if mask is None else mask, **settings)
        return self._joined(context), cache

    def attend_beams(
        self, queries: Tensor, cache: KVCache, branches: BeamTree
    ) -> tuple[Tensor, KVCache]:
        """Attend from continuations side by side, each to itself and its own past.

        Queries are (sentence, continuation, width), and the branches have grown by them already.
        """
        start = len(cache)
        here = branches.positions.new_full(queries.shape[1:2], branches.steps - 1)
        cache = cache.extend(*self.project_kv(queries, offset=here))
        memory = KeyValues(cache.keys, cache.values)
        looking = self._looking(queries, Axes(), here)
        # whoever is alone stands on the last key
        offset = start if branches.mask is None else None
        settings = self._settings(looking, memory, None, offset, (here, branches.positions))
        context = attend(looking, *memory, mask=branches.mask, **settings)
        return self._joined(context), cache

    @classmethod
    def from_torch(cls, theirs: nn.MultiheadAttention) -> "MultiHeadAttention":
        """Take over the weights of torch's multi-head attention."""
        from regard.attention.convert import from_torch

        return from_torch(theirs)

    def to_torch(self) -> nn.MultiheadAttention:
        """Hand the weights over to torch's multi-head attention."""
        from regard.attention.convert import to_torch

        return to_torch(self)

    def _looking(self, queries: Tensor, axes: Axes, offset: int | Tensor = 0) -> Tensor:
        looking = self._parted("queries", self.query, axes.add(queries), offset)
        project = getattr(self.score, "project_queries", None)
        return looking if project is None else project(looking)

    def _memory(
        self, queries: Tensor, keys: Tensor | KeyValues | None, values: Tensor | None, axes: Axes
    ) -> KeyValues:
        if isinstance(keys, KeyValues):
            if values is not None:
                raise ValueError("a memory has values of its own, but values= came with it")
            return KeyValues(axes.batched(keys.keys), axes.batched(keys.values))
        keys = queries if keys is None else keys
        values = keys if values is None else values
        return self.project_kv(axes.batched(keys), axes.batched(values))

    def _parted(
        self, name: str, projection: nn.Linear, rows: Tensor, offset: int | Tensor | None = None
    ) -> Tensor:
        """Project rows, part them into heads, and turn those that have a place to be turned by."""
        if rows.shape[-1] != projection.in_features:
            raise ValueError(
                f"{name} must have a width of {projection.in_features}, "
                f"but their shape is {tuple(rows.shape)}"
            )
        split: Tensor = rearrange(projection(rows), "... k (h d) -> ... h k d", d=self.head_width)
        if offset is not None and isinstance(self.positions, Rotary):
            split = self.positions(split, offset)
        return split

    def _settings(
        self,
        looking: Tensor,
        memory: KeyValues,
        bias: Tensor | None,
        offset: int | None = None,
        positions: tuple[Tensor, Tensor] | None = None,
    ) -> dict[str, Any]:
        if isinstance(self.positions, ALiBi):
            counts = looking.shape[-2], memory.keys.shape[-2]
            near = self.positions
            nearness = near(*counts, offset) if positions is None else near.at(*positions)
            more = looking.ndim - nearness.ndim  # batch axes; one fewer for a sentence alone
            nearness = nearness[0] if more < 0 else nearness[(None,) * more]
            batch = torch.broadcast_shapes(looking.shape[:-3], memory.keys.shape[:-3])
            scores = (*batch, looking.shape[-3], *counts)
            bias = nearness if bias is None else nearness + prepare_bias(bias, scores)
        return {
            "score": getattr(self.score, "compare", self.score),
            "bias": bias,
            "dropout": self.dropout if self.training else 0.0,
            "offset": offset,
        }

    def _joined(self, context: Tensor) -> Tensor:
        joined = rearrange(context, "... h q d -> ... q (h d)")
        return self.out(joined)  # type: ignore[no-any-return]


def _check_heads(width: int, heads: int, key_heads: int, head_width: int | None) -> None:
    if heads < 1 or key_heads < 1:
        raise ValueError(f"heads must be 1 or more, but there are {heads}, of keys {key_heads}")
    if head_width is None and width % heads:
        raise ValueError(
            f"width must be a multiple of heads, but {width} / {heads} leaves {width % heads}; "
            f"{width - width % heads or heads} would fit, or head_width= says how wide a head is"
        )
    if heads % key_heads:
        raise ValueError(
            f"heads must be a multiple of key_heads, but {heads} / {key_heads} leaves "
            f"{heads % key_heads}"
        )
