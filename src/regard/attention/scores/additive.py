"""Additive attention: a small network reads query and key together (Bahdanau et al. 2015)."""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard._support.arguments import check_positive
from regard._support.torch_modes import can_read_values, no_autocast, upcast
from regard.attention.scores.base import Score
from regard.shapes import Keys, Queries, Scores

TILE_ELEMENTS = 2**20  # of one (query, key, hidden) tile, 4 MiB in float32: it stays in the cache


class Additive(Score):
    """`score(q, k) = v·tanh(W q + U k)` (Bahdanau et al. 2015, appendix A.1.2).

    Queries and keys may differ in width. The two projections can be called by themselves, so
    that keys are projected once and compared many times: `score(q, k)` is
    `score.pairwise(score.project_queries(q), score.project_keys(k))`.

    Args:
        query_width: width of the queries.
        key_width: width of the keys; as the queries by default.
        hidden_width: width of the hidden layer; as the queries by default.

    Raises:
        RegardError: if a width is below 1.

    Example:
        >>> score = Additive(12, 4, hidden_width=8)
        >>> score(torch.randn(5, 12), torch.randn(7, 4)).shape
        torch.Size([5, 7])
    """

    is_head_independent = True

    def __init__(
        self, query_width: int, key_width: int | None = None, hidden_width: int | None = None
    ) -> None:
        super().__init__()
        key_width = query_width if key_width is None else key_width
        hidden_width = query_width if hidden_width is None else hidden_width
        check_positive(query_width=query_width, key_width=key_width, hidden_width=hidden_width)
        self.query_projection = nn.Linear(query_width, hidden_width, bias=False)
        self.key_projection = nn.Linear(key_width, hidden_width, bias=False)
        self.tanh_sum = TanhSum(hidden_width)
        nn.init.xavier_uniform_(self.query_projection.weight)
        nn.init.xavier_uniform_(self.key_projection.weight)

    @property
    def widths(self) -> tuple[int, int]:
        """The widths of queries and keys that the projections were made for."""
        return self.query_projection.in_features, self.key_projection.in_features

    def project_queries(self, queries: Tensor) -> Tensor:
        """Return W q, in the hidden layer's space."""
        return self.query_projection(queries)  # type: ignore[no-any-return]

    def project_keys(self, keys: Tensor) -> Tensor:
        """Return U k, in the hidden layer's space."""
        return self.key_projection(keys)  # type: ignore[no-any-return]

    @property
    def pairwise(self) -> "TanhSum":
        """The score of projected queries and keys: v·tanh(a + b)."""
        return self.tanh_sum

    def forward(
        self, queries: Float[Tensor, "*batch query from"], keys: Float[Tensor, "*batch key to"]
    ) -> Scores:
        """Score every query against every key."""
        return self.tanh_sum(self.project_queries(queries), self.project_keys(keys))  # type: ignore[no-any-return]


class TanhSum(Score):
    """`score(a, b) = v·tanh(a + b)`, for queries and keys that are already projected.

    tanh(a + b) = 1 - 2 / (1 + e^2a e^2b): the exponentials are taken once per query and once
    per key, and a pair costs a multiplication, an addition and a division. The pairs are computed
    in tiles that stay in the cache, and again in the backward pass, so that memory never holds
    query × key × hidden elements.
    """

    is_head_independent = True

    def __init__(self, hidden_width: int) -> None:
        super().__init__()
        self.v = nn.Parameter(torch.empty(hidden_width))
        nn.init.uniform_(self.v, -(hidden_width**-0.5), hidden_width**-0.5)

    def forward(self, queries: Queries, keys: Keys) -> Scores:
        """Score every projected query against every projected key."""
        queries, keys, v = upcast(queries), upcast(keys), upcast(self.v)
        if torch.compiler.is_compiling():
            return _compiled(queries, keys, v)
        if not can_read_values(queries):  # which the choice of a formula for tanh needs
            return _direct(queries, keys, v)
        batch = queries.shape[:-2]
        flat = (x.reshape(batch.numel(), *x.shape[-2:]) for x in (queries, keys))
        scores: Tensor = _Tiled.apply(*flat, v)  # type: ignore[no-untyped-call]
        return scores.reshape(*batch, queries.shape[-2], keys.shape[-2])


class _Tiled(torch.autograd.Function):
    """All scores of a flat batch, tile by tile, forwards and backwards.

    A tile holds r = (1 - tanh(a + b)) / 2, so tanh is 1 - 2r and its derivative is 4 (r - r²).
    """

    @staticmethod
    def forward(ctx: Any, queries: Queries, keys: Keys, v: Tensor) -> Scores:
        ctx.save_for_backward(queries, keys, v)
        scores = queries.new_empty(len(queries), queries.shape[1], keys.shape[1])
        for index, tile in _tiles(queries, keys):
            with no_autocast(tile):
                scores[index] = tile @ v
        return scores.mul_(-2).add_(v.sum())

    @staticmethod
    def backward(ctx: Any, grad: Scores) -> tuple[Tensor | None, ...]:
        queries, keys, v = inputs = ctx.saved_tensors  # which may be unpacked only once
        if torch.is_grad_enabled():  # double backward: the gradient is differentiated in turn
            return _differentiable_backward(inputs, ctx.needs_input_grad, grad)
        grad_queries, grad_keys = torch.zeros_like(queries), torch.zeros_like(keys)
        grad_v = grad.sum().expand(len(v)).clone()
        for index, tile in _tiles(queries, keys):
            batch, rows, columns = index
            grad_v -= 2 * torch.einsum("bqk,bqkd->d", grad[index], tile)
            slope = tile.addcmul_(tile, tile, value=-1).mul_(grad[index][..., None])
            grad_queries[batch, rows] += slope.sum(dim=2)
            grad_keys[batch, columns] += slope.sum(dim=1)
        return grad_queries.mul_(4 * v), grad_keys.mul_(4 * v), grad_v


def _differentiable_backward(
    inputs: tuple[Tensor, ...], needs_grad: tuple[bool, ...], grad: Scores
) -> tuple[Tensor | None, ...]:
    """Return the gradients with a graph of their own, from all pairs at once."""
    leaves = [tensor for tensor, needed in zip(inputs, needs_grad, strict=True) if needed]
    gradients = iter(torch.autograd.grad(_direct(*inputs), leaves, grad, create_graph=True))
    return tuple(next(gradients) if needed else None for needed in needs_grad)


def _direct(queries: Queries, keys: Keys, v: Tensor) -> Scores:
    """Evaluate the formula as it is written, holding all pairs."""
    return (v * torch.tanh(queries[..., :, None, :] + keys[..., None, :, :])).sum(dim=-1)


TileIndex = tuple[slice, slice, slice]
"""Slices of batch, query and key."""


def _tiles(queries: Queries, keys: Keys) -> Iterator[tuple[TileIndex, Tensor]]:
    """Yield (1 - tanh(a + b)) / 2 of all pairs in tiles, all in the same memory."""
    centre, radius = _centre_and_radius(queries)
    use_exponentials = bool(radius < _max_radius(queries.dtype))
    if use_exponentials:
        queries, keys = _exponentials(queries, keys, centre, radius)
    one = queries.new_ones(())
    indices, elements = _tile_indices(
        len(queries), queries.shape[1], keys.shape[1], queries.shape[2]
    )
    memory = queries.new_empty(elements)
    for index in indices:
        batch, rows, columns = index
        a, b = queries[batch, rows, None], keys[batch, None, columns]
        shape = torch.broadcast_shapes(a.shape, b.shape)
        tile = memory[: shape.numel()].view(shape)
        if use_exponentials:
            torch.addcmul(one, a, b, out=tile).reciprocal_()
        else:
            torch.add(a, b, out=tile).tanh_().neg_().add_(1).mul_(0.5)
        yield index, tile


def _tile_indices(
    batch: int, rows: int, columns: int, hidden_width: int
) -> tuple[list[TileIndex], int]:
    """Split batch × rows × columns into tiles of TILE_ELEMENTS at most, widest in columns.

    Returns:
        The tiles' indices, and the number of elements of the largest.
    """
    capacity, sizes = max(1, TILE_ELEMENTS // max(1, hidden_width)), []
    for count in (columns, rows, batch):
        sizes.append(max(1, min(count, capacity)))
        capacity = max(1, capacity // sizes[-1])
    column_step, row_step, batch_step = sizes
    indices = [
        (slice(b, b + batch_step), slice(i, i + row_step), slice(j, j + column_step))
        for b in range(0, batch, batch_step)
        for i in range(0, rows, row_step)
        for j in range(0, columns, column_step)
    ]
    return indices, column_step * row_step * batch_step * hidden_width


def _centre_and_radius(queries: Queries) -> tuple[Tensor, Tensor]:
    """Return the midrange of the queries, per component, and the largest distance from it."""
    if not queries.numel():
        return queries.new_zeros(()), queries.new_zeros(())
    low, high = queries.aminmax(dim=-2, keepdim=True)
    return (low + high) / 2, (high - low).amax() / 2


def _exponentials(
    queries: Queries, keys: Keys, centre: Tensor, radius: Tensor
) -> tuple[Tensor, Tensor]:
    """Return e^2a and e^2b such that neither overflows.

    Shifting a by the centre and b back leaves a + b alone, and then |a| is at most `radius`. A key
    beyond radius + saturation has a tanh of ±1 with every query, so it may be clamped there.
    """
    saturation = 20.0 if queries.dtype == torch.float64 else 10.0  # tanh of it rounds to 1
    bound = 2 * (radius + saturation)
    return (2 * (queries - centre)).exp(), (2 * (keys + centre)).clamp(-bound, bound).exp()


def _max_radius(dtype: torch.dtype) -> float:
    """Return the radius up to which e^2(radius + saturation) is finite; beyond it, use tanh."""
    return 300.0 if dtype == torch.float64 else 30.0


def _compiled(queries: Queries, keys: Keys, v: Tensor) -> Scores:
    """Score all pairs in one expression, which the compiler fuses into a single loop."""

    def by_exponentials(queries: Tensor, keys: Tensor, v: Tensor) -> Tensor:
        a, b = _exponentials(queries, keys, *_centre_and_radius(queries))
        return v.sum() - 2 * (v / (1 + a[..., :, None, :] * b[..., None, :, :])).sum(dim=-1)

    _, radius = _centre_and_radius(queries)
    use_exponentials = radius < _max_radius(queries.dtype)
    return torch.cond(use_exponentials, by_exponentials, _direct, (queries, keys, v))  # type: ignore[no-any-return]
