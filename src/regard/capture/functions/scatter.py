"""Sums over elements that share an index, as over the edges of each node of a graph."""

from typing import NamedTuple

import torch
from torch import Tensor

from regard.capture.functions.function_call import FunctionCall

SCATTER_SUMS = {"scatter_add", "index_add", "scatter_reduce", "index_put", "segment_reduce"}


class ScatterSum(NamedTuple):
    """A sum over all elements of an axis that have the same index.

    Attributes:
        source: what is summed.
        dim: the axis of `source`.
        rows: (element,), the row of the result that each element is added to.
        num_rows: of the result.
    """

    source: Tensor
    dim: int
    rows: Tensor
    num_rows: int


def scatter_sum(call: FunctionCall) -> ScatterSum | None:
    """Read a call as a sum by index; None if it is none."""
    name, out = call.name, call.out
    if name not in SCATTER_SUMS or not isinstance(out, Tensor):
        return None
    if name == "segment_reduce":
        return _segment_sum(call)
    if name == "index_put":
        return _put_sum(call)
    if name == "scatter_reduce" and call.argument("reduce", 4) != "sum":
        return None
    source = call.argument("source" if name == "index_add" else "src", 3)
    index = call.argument("index", 2)
    if not isinstance(source, Tensor) or not isinstance(index, Tensor) or not source.ndim:
        return None
    dim = int(call.argument("dim", 1)) % source.ndim
    per_element = _per_element(index, dim)
    if per_element is None or len(per_element) != source.shape[dim]:
        return None
    return ScatterSum(source, dim, per_element, out.shape[dim])


def _per_element(index: Tensor, dim: int) -> Tensor | None:
    """Return the index (element,) of an axis; None if it differs along other axes."""
    if index.ndim < 2:
        return index
    flat = index.movedim(dim, 0).flatten(1)
    return flat[:, 0] if torch.equal(flat, flat[:, :1].expand_as(flat)) else None


def _put_sum(call: FunctionCall) -> ScatterSum | None:
    indices, source = call.args[1], call.argument("values", 2)
    is_sum = bool(call.argument("accumulate", 3, False))
    if not is_sum or len(indices) != 1 or indices[0].ndim != 1 or not isinstance(source, Tensor):
        return None
    return ScatterSum(source, 0, indices[0], len(call.out))


def _segment_sum(call: FunctionCall) -> ScatterSum | None:
    source, dim = call.args[0], int(call.argument("axis", 6, 0))
    if call.argument("reduce", 1) != "sum":
        return None
    lengths, offsets = call.kwargs.get("lengths"), call.kwargs.get("offsets")
    counts = lengths if offsets is None else offsets.diff(dim=-1)
    if counts is None or (counts := _per_segment(counts)) is None:
        return None
    index = torch.arange(len(counts), device=counts.device).repeat_interleave(counts)
    return ScatterSum(source, dim % source.ndim, index, len(counts))


def _per_segment(counts: Tensor) -> Tensor | None:
    flat = counts.reshape(-1, counts.shape[-1])
    return flat[0] if torch.equal(flat, flat[:1].expand_as(flat)) else None
