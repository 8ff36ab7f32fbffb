"""Multi-head attention around any score, with grouped-query heads and a KV cache."""

from typing import Any, NamedTuple

import torch
from einops import rearrange
from torch import Tensor, nn

from regard._support.arguments import check_dropout, check_positive, to_integer
from regard._support.linear import Linear
from regard._support.text import format_settings
from regard.attention.beam_cache import BeamTree
from regard.attention.call import prepare_bias
from regard.attention.functional import AttentionOutput, attend, look
from regard.attention.kv_cache import KeyValues, KVCache
from regard.attention.scores import Score, ScoreFunction, as_score, make_score
from regard.errors import RegardError, wrong_type
from regard.masks import Mask, causal
from regard.positions import ALiBi, Rotary


class MultiHeadAttention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017, section 3.2.2) around any score.

    `head_h = attend(Q W_h, K U_g, V Z_g)` and the output is `[head_1 … head_H] O`, where query head
    h reads key head `g = h // (heads / key_heads)`::

        query heads  0 1 2 3 4 5 6 7      heads = 8
                     └─┴─┴─┘ └─┴─┴─┘
        key heads       0       1         key_heads = 2 (num_kv_heads elsewhere)

    As many key heads as heads is multi-head attention (MHA), fewer is grouped-query attention
    (GQA, Ainslie et al. 2023), one is multi-query attention (MQA, Shazeer 2019). Fewer key heads
    make a smaller KV cache.

    `attention(x)` is self-attention, `attention(x, y)` attends from x to y (cross-attention).

    Args:
        width: of the queries and of the output; `embed_dim` or `d_model` elsewhere.
        heads: number of query heads.
        score: a name of `regard.attention.SCORE_NAMES`, a `Score`, or any function of queries and
            keys.
        key_heads: number of key and value heads, a divisor of `heads`; as many by default.
        head_width: of one head; width / heads by default.
        key_width: of the keys that come in; `width` by default.
        value_width: of the values that come in; as the keys by default.
        bias: whether the projections have a bias.
        dropout: of attention weights, while training.
        positions: `Rotary` rotates queries and keys, `ALiBi` adds a bias to the scores.

    Raises:
        RegardError: if the numbers of heads do not divide, a width is below 1, `dropout` is not a
            probability, or no score has this name.
        TypeError: if `positions` are of another kind.

    Example:
        >>> attention = MultiHeadAttention(12, heads=6, key_heads=2)  # GQA
        >>> attention(torch.randn(2, 5, 12), mask=causal()).shape
        torch.Size([2, 5, 12])
        >>> attention.look(torch.randn(2, 5, 12), torch.randn(2, 7, 12)).weights.shape
        torch.Size([2, 6, 5, 7])
    """

    def __init__(
        self,
        width: int,
        heads: int = 8,
        *,
        score: str | Score | ScoreFunction = "scaled_dot",
        key_heads: int | None = None,
        head_width: int | None = None,
        key_width: int | None = None,
        value_width: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        positions: Rotary | ALiBi | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(positions, Rotary | ALiBi | None):
            error = wrong_type("positions", "a Rotary or an ALiBi", positions)
            raise TypeError(f"{error}; other positions are added to the embeddings")
        check_positive(
            width=width, head_width=head_width, key_width=key_width, value_width=value_width
        )
        check_dropout(dropout)
        self.heads = heads
        self.key_heads = heads if key_heads is None else key_heads
        _check_heads(width, heads, self.key_heads, head_width)
        self.head_width = width // heads if head_width is None else head_width
        key_width = width if key_width is None else key_width
        value_width = key_width if value_width is None else value_width
        self.query = Linear(width, heads * self.head_width, bias)
        self.key = Linear(key_width, self.key_heads * self.head_width, bias)
        self.value = Linear(value_width, self.key_heads * self.head_width, bias)
        self.out = Linear(heads * self.head_width, width, bias)
        for projection in (self.query, self.key, self.value, self.out):
            nn.init.xavier_uniform_(projection.weight)
            if bias:
                nn.init.zeros_(projection.bias)
        widths = (self.head_width, self.head_width)
        self.score = make_score(score, widths) if isinstance(score, str) else as_score(score)
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
        """Return the output of attention with every head.

        Args:
            queries: (batch, query, width), or without the batch axis; without the query axis it
                is a single query.
            keys: (batch, key, key_width), or what `project_kv` returned; the queries by default.
            values: (batch, key, value_width); the keys by default.
            mask: True where a query may attend.
            bias: added to the scores, shaped like a mask.

        Returns:
            (batch, query, width), with the axes of the queries.

        Raises:
            RegardError: if a shape does not fit, or there are fewer queries than keys with `ALiBi`.
        """
        dims = _BatchDims.infer(queries, keys)
        split = self._project_queries(queries, dims)
        memory = self._memory(queries, keys, values, dims)
        context = attend(split, *memory, mask=mask, **self._call_arguments(split, memory, bias))
        return dims.squeeze(self._merge_heads(context))

    def look(
        self,
        queries: Tensor,
        keys: Tensor | KeyValues | None = None,
        values: Tensor | None = None,
        *,
        mask: Mask | Tensor | None = None,
        bias: Tensor | None = None,
    ) -> AttentionOutput:
        """Return the output, as `forward` does, and the attention weights.

        Takes the arguments of `forward`.

        Returns:
            An `AttentionOutput`, with the weights of every head, (batch, head, query, key), before
            dropout.
        """
        dims = _BatchDims.infer(queries, keys)
        split = self._project_queries(queries, dims)
        memory = self._memory(queries, keys, values, dims)
        context, weights = look(
            split, *memory, mask=mask, **self._call_arguments(split, memory, bias)
        )
        return AttentionOutput(dims.squeeze(self._merge_heads(context)), dims.squeeze(weights))

    def project_kv(
        self, keys: Tensor, values: Tensor | None = None, offset: int | Tensor = 0
    ) -> KeyValues:
        """Project keys and values once, to be passed to `forward` many times in place of keys.

        Args:
            keys: (batch, key, key_width).
            values: (batch, key, value_width); the keys by default.
            offset: position of the first key, or a tensor of every key's, for rotary positions.

        Returns:
            `KeyValues`, each (batch, key head, key, head_width).
        """
        values = keys if values is None else values
        return KeyValues(
            self.score.project_keys(self._split_heads("keys", self.key, keys, offset)),
            self._split_heads("values", self.value, values),
        )

    def step(
        self, queries: Tensor, cache: KVCache, *, mask: Mask | Tensor | None = None
    ) -> tuple[Tensor, KVCache]:
        """Attend from new positions to themselves and all before them: incremental decoding.

        Args:
            queries: (batch, new position, width).
            cache: keys and values of the positions so far; `KVCache()` at first.
            mask: over all keys so far; causal by default.

        Returns:
            The output (batch, new position, width), and the longer cache.

        Example:
            >>> attention, cache = MultiHeadAttention(12, heads=3), KVCache()
            >>> output, cache = attention.step(torch.randn(2, 4, 12), cache)
            >>> output, cache = attention.step(torch.randn(2, 1, 12), cache)
            >>> output.shape, len(cache)
            (torch.Size([2, 1, 12]), 5)
        """
        offset = len(cache)
        split = self._project_queries(queries, _BatchDims(), offset)
        cache = cache.extend(*self.project_kv(queries, offset=offset))
        memory = KeyValues(cache.keys, cache.values)
        arguments = self._call_arguments(split, memory, None, offset)
        context = attend(split, *memory, mask=causal() if mask is None else mask, **arguments)
        return self._merge_heads(context), cache

    def attend_beams(
        self, queries: Tensor, cache: KVCache, tree: BeamTree
    ) -> tuple[Tensor, KVCache]:
        """Attend from the beams of each batch item, each to itself and its own past.

        Args:
            queries: (batch, beam, width), the newest position of each beam.
            cache: the keys and values of all beams so far.
            tree: which beam sees which key; it has grown by these queries already.

        Returns:
            The output (batch, beam, width), and the longer cache.
        """
        start = len(cache)
        position = tree.positions.new_full(queries.shape[1:2], tree.steps - 1)
        cache = cache.extend(*self.project_kv(queries, offset=position))
        memory = KeyValues(cache.keys, cache.values)
        split = self._project_queries(queries, _BatchDims(), position)
        # the query of a single beam is at the last key, so that its offset is known
        offset = start if tree.mask is None else None
        arguments = self._call_arguments(split, memory, None, offset, (position, tree.positions))
        context = attend(split, *memory, mask=tree.mask, **arguments)
        return self._merge_heads(context), cache

    @classmethod
    def from_torch(cls, module: nn.MultiheadAttention) -> "MultiHeadAttention":
        """Return a module with the parameters of torch's, which gives the same output.

        Raises:
            RegardError: if torch's module adds keys (`add_bias_kv`, `add_zero_attn`).

        Example:
            >>> attention = MultiHeadAttention.from_torch(nn.MultiheadAttention(12, 3))
            >>> attention.heads, attention.head_width
            (3, 4)
        """
        from regard.attention.convert import from_torch

        return from_torch(module)

    def to_torch(self) -> nn.MultiheadAttention:
        """Return torch's module with these parameters, `batch_first`, which gives the same output.

        Raises:
            RegardError: if the module has a score, heads or positions that torch's does not have.

        Example:
            >>> MultiHeadAttention(12, heads=3).to_torch().num_heads
            3
        """
        from regard.attention.convert import to_torch

        return to_torch(self)

    def extra_repr(self) -> str:
        """Show the heads and the dropout."""
        names = ("heads", "key_heads", "head_width", "dropout")
        return format_settings({name: getattr(self, name) for name in names})

    def _project_queries(
        self, queries: Tensor, dims: "_BatchDims", offset: int | Tensor = 0
    ) -> Tensor:
        rows = dims.expand_queries(queries)
        return self.score.project_queries(self._split_heads("queries", self.query, rows, offset))

    def _memory(
        self,
        queries: Tensor,
        keys: Tensor | KeyValues | None,
        values: Tensor | None,
        dims: "_BatchDims",
    ) -> KeyValues:
        if isinstance(keys, KeyValues):
            if values is not None:
                raise RegardError("KeyValues have values of their own, but values= was also given")
            return KeyValues(dims.expand_keys(keys.keys), dims.expand_keys(keys.values))
        keys = queries if keys is None else keys
        values = keys if values is None else values
        return self.project_kv(dims.expand_keys(keys), dims.expand_keys(values))

    def _split_heads(
        self, name: str, projection: nn.Linear, rows: Tensor, offset: int | Tensor | None = None
    ) -> Tensor:
        """Project rows and split them into heads; rotate them if they have an offset."""
        if rows.shape[-1] != projection.in_features:
            raise RegardError(
                f"{name} must have a width of {projection.in_features}, "
                f"but their shape is {tuple(rows.shape)}"
            )
        split: Tensor = rearrange(projection(rows), "... k (h d) -> ... h k d", d=self.head_width)
        if offset is not None and isinstance(self.positions, Rotary):
            split = self.positions(split, offset)
        return split

    def _merge_heads(self, context: Tensor) -> Tensor:
        """Concatenate the heads and apply the output projection."""
        merged = rearrange(context, "... h q d -> ... q (h d)")
        return self.out(merged)  # type: ignore[no-any-return]

    def _call_arguments(
        self,
        queries: Tensor,
        memory: KeyValues,
        bias: Tensor | None,
        offset: int | None = None,
        positions: tuple[Tensor, Tensor] | None = None,
    ) -> dict[str, Any]:
        """Return the keyword arguments of `attend`.

        Args:
            queries: projected and split into heads, as the memory is.
            memory: projected keys and values.
            bias: the caller's.
            offset: index of the key at the first query's own position.
            positions: of queries and keys, where they are not consecutive.
        """
        if isinstance(self.positions, ALiBi):
            bias = self._alibi_bias(self.positions, queries, memory, bias, offset, positions)
        return {
            "score": self.score.pairwise,
            "bias": bias,
            "dropout": self.dropout if self.training else 0.0,
            "offset": offset,
        }

    def _alibi_bias(
        self,
        alibi: ALiBi,
        queries: Tensor,
        memory: KeyValues,
        bias: Tensor | None,
        offset: int | None,
        positions: tuple[Tensor, Tensor] | None,
    ) -> Tensor:
        counts = queries.shape[-2], memory.keys.shape[-2]
        if positions is None and offset is None and counts[0] != counts[1]:
            raise RegardError(
                "attention with ALiBi positions needs as many queries as keys, but there are "
                f"{counts[0]} queries and {counts[1]} keys; `step` attends to the keys of a cache"
            )
        distance = alibi(*counts, offset) if positions is None else alibi.between(*positions)
        missing_axes = queries.ndim - distance.ndim  # batch axes; one too many without a batch
        distance = distance[0] if missing_axes < 0 else distance[(None,) * missing_axes]
        if bias is None:
            return distance
        batch = torch.broadcast_shapes(queries.shape[:-3], memory.keys.shape[:-3])
        return distance + prepare_bias(bias, (*batch, queries.shape[-3], *counts))


class _BatchDims(NamedTuple):
    """Which axes the caller's queries lack: they are inserted before the call, removed after."""

    single_query: bool = False
    unbatched: bool = False

    @classmethod
    def infer(cls, queries: Tensor, keys: Tensor | KeyValues | None) -> "_BatchDims":
        """Compare queries with keys; None for self-attention."""
        if keys is None:
            axes = queries.ndim
        else:
            axes = keys.keys.ndim - 1 if isinstance(keys, KeyValues) else keys.ndim
        if axes < 2 or queries.ndim not in (axes, axes - 1):
            raise RegardError(
                "queries must be (batch, query, width), with one axis fewer for a single query, "
                f"but their shape is {tuple(queries.shape)} and the keys have {axes} axes"
            )
        return cls(single_query=queries.ndim == axes - 1, unbatched=axes == 2)

    def expand_queries(self, queries: Tensor) -> Tensor:
        """Insert the query axis and the batch axis."""
        return self.expand_keys(queries.unsqueeze(-2) if self.single_query else queries)

    def expand_keys(self, rows: Tensor) -> Tensor:
        """Insert the batch axis."""
        return rows[None] if self.unbatched else rows

    def squeeze(self, rows: Tensor) -> Tensor:
        """Remove the inserted axes."""
        rows = rows.squeeze(-2) if self.single_query else rows
        return rows[0] if self.unbatched else rows


def _check_heads(width: int, heads: int, key_heads: int, head_width: int | None) -> None:
    if to_integer("heads", heads) < 1 or to_integer("key_heads", key_heads) < 1:
        raise RegardError(
            f"heads and key_heads must be 1 or more, but they are {heads} and {key_heads}"
        )
    if head_width is None and width % heads:
        raise RegardError(
            f"width must be a multiple of heads, but {width} / {heads} leaves {width % heads}; "
            f"{width - width % heads or heads} would work, or pass head_width="
        )
    if heads % key_heads:
        raise RegardError(
            f"heads must be a multiple of key_heads, but {heads} / {key_heads} leaves "
            f"{heads % key_heads}"
        )
