"""One call of attention, from which any of its weights can be computed again."""

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from regard._support.precision import upcast
from regard.capture.head_layout import Heads
from regard.capture.mask_analysis import hidden_from_all, hide, hides_later, plain

Sizes = tuple[int, int, int, int]


@runtime_checkable
class Asked(Protocol):
    """Queries over keys in (batch, head), and the rows of weights between them."""

    sizes: Sizes  # batch, head, query, key
    apart: bool  # heads cost no more one by one than all together
    causal: bool  # nobody looks ahead
    offset: int  # the key on which the first query stands
    added: int  # keys at the end that are no positions, but learned or zero
    memory: Tensor | None  # (batch, key head, key, width), as handed over: does a cache grow?
    values: Tensor | None  # (batch, key head, key, value)

    def reach(self, stop: int) -> int:
        """Count the first keys that rows before `stop` may see."""
        ...

    def weigh(self, batch: slice, heads: list[int], rows: slice) -> Tensor:
        """Compute weights (batch, head, row, key), of keys within reach of the last row."""
        ...

    def hidden(self) -> Tensor | None:
        """Tell which keys (batch, key) a mask hides from everyone; None if there is no mask."""
        ...


class Dot:
    """A call of torch's scaled dot-product attention."""

    apart = True

    def __init__(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
        added: int = 0,
        heads: Heads | None = None,
    ) -> None:
        del dropout_p, enable_gqa  # weights are those before dropout; groups are told by shapes
        if heads is not None and heads.apart(queries) is not queries:
            if attn_mask is not None:
                attn_mask = _apart(attn_mask, heads, queries.ndim)
            queries, keys, values = (heads.apart(x) for x in (queries, keys, values))
        self.added = added
        self.scale = queries.shape[-1] ** -0.5 if scale is None else scale
        self.values: Tensor | None = four_axes(values)
        self.memory: Tensor | None = four_axes(keys)
        before = torch.broadcast_shapes(queries.shape[:-3], keys.shape[:-3])
        axes = queries.ndim
        queries, keys = as_computed(queries), as_computed(keys)
        self.queries, self.keys = four_axes(queries), four_axes(keys)
        batch = torch.broadcast_shapes(self.queries.shape[:1], self.keys.shape[:1])[0]
        every = max(self.queries.shape[1], self.keys.shape[1])
        self.sizes: Sizes = (batch, every, self.queries.shape[2], self.keys.shape[2])
        self.mask = None if attn_mask is None else self._spread(attn_mask, axes, before)
        self._stairs = is_causal
        self.offset = self._offset()
        self.causal = is_causal or self._mask_is_causal()

    def reach(self, stop: int) -> int:
        """Count the first keys that rows before `stop` may see."""
        return min(stop, self.sizes[3]) if self._stairs else self.sizes[3]

    def weigh(self, batch: slice, heads: list[int], rows: slice) -> Tensor:
        """Compute weights (batch, head, row, key), of keys within reach of the last row."""
        start, stop, _ = rows.indices(self.sizes[2])
        reach = self.reach(stop)
        queries, keys = self._rows(batch, heads, slice(start, stop), reach)
        scores = torch.matmul(queries * self.scale, keys.transpose(-2, -1))
        if self.mask is not None:
            part = self.mask[batch, :, start:stop, :reach]
            part = part if part.shape[1] == 1 else part[:, heads]
            scores = hide(scores, part)
        if self._stairs and reach > start + 1:
            later = scores.new_ones(stop - start, reach, dtype=torch.bool).triu_(start + 1)
            scores.masked_fill_(later, -torch.inf)
        return weights_of(scores, hidden=self.mask is not None)

    def hidden(self) -> Tensor | None:
        """Tell which keys (batch, key) a mask hides from everyone; None if there is no mask."""
        batch, _, queries, keys = self.sizes
        if self.mask is not None:
            return hidden_from_all(self.mask)
        if not self._stairs:
            return None
        beyond = torch.ones(batch, keys, dtype=torch.bool, device=self.keys.device)
        beyond[:, :queries] = False
        return beyond

    def _rows(
        self, batch: slice, heads: list[int], rows: slice, reach: int
    ) -> tuple[Tensor, Tensor]:
        """Pick queries, and the keys of the group that each head belongs to."""
        every, key_heads = self.sizes[1], self.keys.shape[1]
        own = heads if self.queries.shape[1] > 1 else [0] * len(heads)
        queries = self.queries[batch] if len(self.queries) > 1 else self.queries
        keys = self.keys[batch] if len(self.keys) > 1 else self.keys
        queries, keys = queries[:, :, rows], keys[:, :, :reach]
        groups = [head * key_heads // every for head in heads]
        return upcast(_picked(queries, own)), upcast(_picked(keys, groups))

    def _spread(self, mask: Tensor, axes: int, before: torch.Size) -> Tensor:
        """Give a mask the axes that the vectors had, so that both are brought to four alike."""
        mask = plain(mask)
        mask = mask[(None,) * (axes - mask.ndim)]
        if len(before) > 1:
            mask = mask.expand(*before, -1, -1, -1)
        batch, _, queries, keys = self.sizes
        return four_axes(mask).expand(batch, -1, queries, keys)

    def _offset(self) -> int:
        """Find the first query's place, from a mask that hides what is still empty in a cache."""
        queries, keys = self.sizes[2], self.sizes[3] - self.added
        if self._stairs or queries >= keys:
            return 0
        if self.mask is None:
            return keys - queries
        last = ~hidden_from_all(self.mask[:, :, -1:, :keys])
        seen = last.any(dim=0).nonzero()
        return max(0, int(seen.max()) + 1 - queries) if len(seen) else 0

    def _mask_is_causal(self) -> bool:
        return self.mask is not None and hides_later(self.mask, self.offset, self.added)


class Whole:
    """A call whose weights were seen, all of them."""

    apart = True

    def __init__(
        self,
        weights: Tensor,
        values: Tensor | None = None,
        offset: int | None = None,
        *,
        masked: bool = False,
        added: int = 0,
    ) -> None:
        self.weights, self.values, self.memory = weights, values, values
        batch, heads, queries, keys = weights.shape
        self.sizes = (batch, heads, queries, keys)
        self.added, self._masked = added, masked
        self.offset = max(0, keys - added - queries) if offset is None else offset
        self.causal = hides_later(weights != 0, self.offset, added)

    def reach(self, stop: int) -> int:
        """Count all keys."""
        return self.sizes[3]

    def weigh(self, batch: slice, heads: list[int], rows: slice) -> Tensor:
        """Give weights (batch, head, row, key)."""
        return upcast(self.weights[batch, :, rows][:, heads])

    def hidden(self) -> Tensor | None:
        """Tell which keys (batch, key) got nothing; None if no mask was seen."""
        return hidden_from_all(self.weights != 0) if self._masked else None


def _picked(rows: Tensor, heads: list[int]) -> Tensor:
    """Pick heads, without a copy where they are all or one."""
    if heads == list(range(rows.shape[1])):
        return rows
    same = len(set(heads)) == 1
    return rows[:, heads[0] : heads[0] + 1] if same else rows[:, heads]


def as_computed(vectors: Tensor) -> Tensor:
    """Round vectors as autocast does before a product."""
    device = vectors.device.type
    if torch.is_autocast_enabled(device) and vectors.dtype == torch.float32:
        return vectors.detach().to(torch.get_autocast_dtype(device))
    return vectors.detach()


def four_axes(vectors: Tensor) -> Tensor:
    """Bring vectors to (batch, head, row, width); without heads there is one."""
    vectors = vectors.detach()
    if vectors.ndim > 4:
        return vectors.flatten(0, vectors.ndim - 4)
    if vectors.ndim == 3:
        return vectors[:, None]
    return vectors[None, None] if vectors.ndim == 2 else vectors


def _apart(mask: Tensor, heads: Heads, axes: int) -> Tensor:
    """Lay a mask out as vectors of so many axes are, whose heads are taken apart."""
    if axes == 4 and not heads.folded and mask.ndim > 2:
        return mask.transpose(0, 1) if mask.ndim == 4 else mask[:, None]
    return mask[None] if mask.ndim == 3 and mask.shape[0] == 1 else heads.apart(mask)


def weights_of(scores: Tensor, hidden: bool) -> Tensor:
    """Turn scores into weights, in place; a row that may look nowhere is zeros."""
    if not hidden or not scores.shape[-1]:
        return torch.softmax(scores, dim=-1, out=scores)
    nowhere = scores.amax(dim=-1, keepdim=True) == -torch.inf
    return torch.softmax(scores, dim=-1, out=scores).masked_fill_(nowhere, 0.0)
