"""Additive: a small network that looks at query and key together, as in Bahdanau's translator."""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard._support.functorch import in_functorch
from regard._support.precision import no_autocast, upcast
from regard.shapes import Keys, Queries, Scores

TILE = 2**20  # numbers of one (query, key, hidden) tile, 4 MiB in float32: it stays in the cache


class Additive(nn.Module):
    """score(q, k) = v·tanh(W q + U k) (Bahdanau et al. 2015, appendix A.1.2).

    Queries and keys may differ in width. The two projections are modules of their own, so
    that keys can be projected once and compared many times: `score(q, k)` is
    `score.compare(score.project_queries(q), score.project_keys(k))`.
    """

    def __init__(
        self, query_width: int, key_width: int | None = None, hidden_width: int | None = None
    ):
        super().__init__()
        hidden = hidden_width or query_width
        self.project_queries = nn.Linear(query_width, hidden, bias=False)
        self.project_keys = nn.Linear(key_width or query_width, hidden, bias=False)
        self.compare = TanhSum(hidden)
        nn.init.xavier_uniform_(self.project_queries.weight)
        nn.init.xavier_uniform_(self.project_keys.weight)

    @property
    def widths(self) -> tuple[int, int]:
        """The widths of queries and keys that this score was made for."""
        return self.project_queries.in_features, self.project_keys.in_features

    def forward(
        self, queries: Float[Tensor, "*batch query from"], keys: Float[Tensor, "*batch key to"]
    ) -> Scores:
        """Score every query against every key."""
        return self.compare(self.project_queries(queries), self.project_keys(keys))  # type: ignore[no-any-return]


class TanhSum(nn.Module):
    """score(a, b) = v·tanh(a + b), for queries and keys that are already projected.

    tanh(a + b) = 1 - 2 / (1 + e^2a e^2b): the exponentials are taken once per query and once
    per key, and a pair costs a multiplication, an addition and a division. The pairs are worked
    through in tiles that stay in the cache, and again in the backward pass, so that memory
    never holds query × key × hidden numbers.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.v = nn.Parameter(torch.empty(hidden))
        nn.init.uniform_(self.v, -(hidden**-0.5), hidden**-0.5)

    def forward(self, queries: Queries, keys: Keys) -> Scores:
        """Score every projected query against every projected key."""
        queries, keys, v = upcast(queries), upcast(keys), upcast(self.v)
        if torch.compiler.is_compiling():
            return _compiled(queries, keys, v)
        if in_functorch():
            return _by_tanh(queries, keys, v)
        batch = queries.shape[:-2]
        flat = (x.reshape(batch.numel(), *x.shape[-2:]) for x in (queries, keys))
        scores: Tensor = _Tiled.apply(*flat, v)  # type: ignore[no-untyped-call]
        return scores.reshape(*batch, queries.shape[-2], keys.shape[-2])


class _Tiled(torch.autograd.Function):
    """All scores of flat batches, tile by tile, forwards and backwards.

    A tile holds r = (1 - tanh(a + b)) / 2, so tanh is 1 - 2r and its slope is 4 (r - r²).
    """

    @staticmethod
    def forward(ctx: Any, queries: Queries, keys: Keys, v: Tensor) -> Scores:
        ctx.save_for_backward(queries, keys, v)
        scores = queries.new_empty(len(queries), queries.shape[1], keys.shape[1])
        for place, tile in _tiles(queries, keys):
            with no_autocast(tile):
                scores[place] = tile @ v
        return scores.mul_(-2).add_(v.sum())

    @staticmethod
    def backward(ctx: Any, grad: Scores) -> tuple[Tensor | None, ...]:
        queries, keys, v = given = ctx.saved_tensors  # which may be unpacked once only
        if torch.is_grad_enabled():  # the gradient is needs_grad in turn
            return _differentiable(given, ctx.needs_input_grad, grad)
        by_queries, by_keys = torch.zeros_like(queries), torch.zeros_like(keys)
        by_v = grad.sum().expand(len(v)).clone()
        for place, tile in _tiles(queries, keys):
            batch, rows, columns = place
            by_v -= 2 * torch.einsum("bqk,bqkd->d", grad[place], tile)
            slope = tile.addcmul_(tile, tile, value=-1).mul_(grad[place][..., None])
            by_queries[batch, rows] += slope.sum(dim=2)
            by_keys[batch, columns] += slope.sum(dim=1)
        return by_queries.mul_(4 * v), by_keys.mul_(4 * v), by_v


def _differentiable(
    given: tuple[Tensor, ...], needed: tuple[bool, ...], grad: Scores
) -> tuple[Tensor | None, ...]:
    """Give the gradients with a graph of their own, all pairs at once."""
    wanted = [numbers for numbers, need in zip(given, needed, strict=True) if need]
    found = iter(torch.autograd.grad(_by_tanh(*given), wanted, grad, create_graph=True))
    return tuple(next(found) if need else None for need in needed)


def _by_tanh(queries: Queries, keys: Keys, v: Tensor) -> Scores:
    return (v * torch.tanh(queries[..., :, None, :] + keys[..., None, :, :])).sum(dim=-1)


Place = tuple[slice, slice, slice]


def _tiles(queries: Queries, keys: Keys) -> Iterator[tuple[Place, Tensor]]:
    """Walk through the pairs in tiles of (1 - tanh(a + b)) / 2, all in the same memory."""
    centre, reach = _centre_and_reach(queries)
    in_range = bool(reach < _most(queries.dtype))
    if in_range:
        queries, keys = _exponentials(queries, keys, centre, reach)
    one = queries.new_ones(())
    places, numbers = _places(len(queries), queries.shape[1], keys.shape[1], queries.shape[2])
    memory = queries.new_empty(numbers)
    for place in places:
        batch, rows, columns = place
        a, b = queries[batch, rows, None], keys[batch, None, columns]
        shape = torch.broadcast_shapes(a.shape, b.shape)
        tile = memory[: shape.numel()].view(shape)
        if in_range:
            torch.addcmul(one, a, b, out=tile).reciprocal_()
        else:
            torch.add(a, b, out=tile).tanh_().neg_().add_(1).mul_(0.5)
        yield place, tile


def _places(batch: int, rows: int, columns: int, hidden: int) -> tuple[list[Place], int]:
    """Cut batch × rows × columns into blocks of at most TILE numbers, long in columns first."""
    room, sizes = max(1, TILE // max(1, hidden)), []
    for count in (columns, rows, batch):
        sizes.append(max(1, min(count, room)))
        room = max(1, room // sizes[-1])
    across, down, deep = sizes
    places = [
        (slice(n, n + deep), slice(i, i + down), slice(j, j + across))
        for n in range(0, batch, deep)
        for i in range(0, rows, down)
        for j in range(0, columns, across)
    ]
    return places, across * down * deep * hidden


def _centre_and_reach(queries: Queries) -> tuple[Tensor, Tensor]:
    """Find the middle of the queries, per hidden number, and how far any is from it."""
    if not queries.numel():
        return queries.new_zeros(()), queries.new_zeros(())
    low, high = queries.aminmax(dim=-2, keepdim=True)
    return (low + high) / 2, (high - low).amax() / 2


def _exponentials(
    queries: Queries, keys: Keys, centre: Tensor, reach: Tensor
) -> tuple[Tensor, Tensor]:
    """Take e^2a and e^2b so that neither leaves the range of numbers.

    Moving a by the centre and b back leaves a + b alone, and then |a| is at most `reach`. A key
    beyond reach + flat has a tanh of ±1 with every query, so it may be cut there.
    """
    flat = 20.0 if queries.dtype == torch.float64 else 10.0  # tanh(uniform) rounds to 1
    far = 2 * (reach + flat)
    return (2 * (queries - centre)).exp(), (2 * (keys + centre)).clamp(-far, far).exp()


def _most(dtype: torch.dtype) -> float:
    """Give the reach up to which e^2(reach + flat) is a number; beyond it tanh itself is taken."""
    return 300.0 if dtype == torch.float64 else 30.0


def _compiled(queries: Queries, keys: Keys, v: Tensor) -> Scores:
    """Score all pairs in one expression, which the compiler fuses into a single loop."""

    def by_exponentials(queries: Tensor, keys: Tensor, v: Tensor) -> Tensor:
        a, b = _exponentials(queries, keys, *_centre_and_reach(queries))
        return v.sum() - 2 * (v / (1 + a[..., :, None, :] * b[..., None, :, :])).sum(dim=-1)

    _, reach = _centre_and_reach(queries)
    in_range = reach < _most(queries.dtype)
    return torch.cond(in_range, by_exponentials, _by_tanh, (queries, keys, v))  # type: ignore[no-any-return]
