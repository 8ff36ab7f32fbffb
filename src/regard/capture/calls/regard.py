"""Calls of regard's own attention, of any score, mask and backend."""

from dataclasses import replace

import torch
from torch import Tensor

from regard._support.torch_modes import upcast
from regard.attention import AttentionCall
from regard.attention.backends import dense
from regard.attention.backends.folding import fold
from regard.attention.call import stack_groups, unstack_groups
from regard.capture.calls.base import CapturedCall, Shape, round_like_autocast, to_four_axes
from regard.capture.calls.mask_analysis import as_boolean, is_causal_sampled, visible_to_any
from regard.capture.calls.score_copy import side_effect_free_copy
from regard.capture.calls.sdpa import SDPACall
from regard.capture.calls.vectors import QueryKeyVectors
from regard.masks import AttentionShape


def capture_regard_call(call: AttentionCall) -> CapturedCall:
    """Return the captured call: an `SDPACall` if the call amounts to a dot product."""
    causal = call.mask is not None and call.mask.is_causal(call.shape)
    is_unmasked = call.bias is None and (call.mask is None or causal) and call.groups == 1
    if not (is_unmasked and call.score.is_dot_product):
        return RegardCall(call)
    form = fold(call, call.queries, None)
    if form is None:
        return RegardCall(call)
    queries, keys, scale, _ = form.absorb_key_bias()
    captured = SDPACall(upcast(queries), upcast(keys), call.values, is_causal=causal, scale=scale)
    captured.raw_keys = to_four_axes(call.keys)  # a folded key may depend on all the others
    return captured


class RegardCall:
    """A call whose rows are scored again by its own score, all heads together."""

    heads_independent, extra_keys = False, 0

    def __init__(self, call: AttentionCall) -> None:
        self._call = replace(
            call,
            queries=upcast(round_like_autocast(call.queries)),
            keys=upcast(round_like_autocast(call.keys)),
        )
        *leading, queries, keys = call.shape.score_shape
        heads = leading[-1] if len(leading) > 1 else 1
        batch = torch.Size(leading).numel() // max(1, heads)
        self.shape: Shape = (batch, heads, queries, keys)
        self.raw_keys: Tensor | None = to_four_axes(call.keys)
        self.values: Tensor | None = to_four_axes(call.values)
        offset = call.shape.offset
        self.offset = max(0, keys - queries) if offset is None else offset
        self.is_causal = call.mask is not None and is_causal_sampled(
            self._sees_from, queries, keys, self.offset
        )

    def visible_keys(self, stop: int) -> int:
        """Return the number of keys: a mask has no known bound."""
        return self.shape[3]

    def weights(self, batch: slice, heads: list[int], rows: slice) -> Tensor:
        """Compute weights (batch, head, row, key)."""
        # a fresh copy, so that each block meets the state that the score had before the call
        call = replace(self._call, score=side_effect_free_copy(self._call.score))
        start, stop, _ = rows.indices(self.shape[2])
        scores = dense.score(call, call.queries[..., start:stop, :])
        weights = dense.softmax(call, scores, call.shape.with_rows(start, stop - start))
        return weights.reshape(*self.shape[:2], *weights.shape[-2:])[batch, heads]

    def fully_masked_keys(self) -> Tensor | None:
        """Return the keys (batch, key) that mask and bias hide from all queries; None without."""
        shape, (batch, heads, queries, keys) = self._call.shape, self.shape
        if self._call.mask is None and self._call.bias is None:
            return None

        def visible(start: int, stop: int) -> Tensor:
            rows = self._visible(shape.with_rows(start, stop - start)).any(-2)
            return rows.expand(*shape.batch, keys).reshape(batch, heads, keys).any(1)

        return ~visible_to_any(visible, queries)

    def vectors(self) -> QueryKeyVectors | None:
        """Return the queries and keys of a dot product; None for any other score."""
        call = self._call
        if not call.score.is_dot_product:
            return None
        form = fold(call, stack_groups(call.queries, call.groups), None)
        if form is None:
            return None
        queries, keys, scale, _ = form.absorb_key_bias()
        queries = unstack_groups(queries, call.groups)
        return QueryKeyVectors(to_four_axes(queries), to_four_axes(keys), scale)

    def _visible(self, shape: AttentionShape) -> Tensor:
        """Return which keys the rows of a shape may attend to, as far as mask and bias go."""
        visible = torch.ones(1, shape.keys, dtype=torch.bool, device=shape.device)
        if self._call.mask is not None:
            visible = visible & self._call.mask.materialize(shape)
        if self._call.bias is not None:
            visible = visible & as_boolean(shape.slice_rows(self._call.bias))
        return visible

    def _sees_from(self, row: int, key: int) -> bool:
        assert self._call.mask is not None, "asked only if there is a mask"
        visible = self._call.mask.materialize(self._call.shape.with_rows(row, 1))
        return bool(visible[..., key:].any())
