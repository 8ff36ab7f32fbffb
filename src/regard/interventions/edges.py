"""Attention over the edges of a graph while it is edited."""

import torch
from torch import Tensor

from regard._support.torch_modes import no_autocast, upcast
from regard.capture.calls import EdgeWeights, EditedWeights
from regard.capture.functions import ScatterSum
from regard.capture.weights import Multiplication
from regard.errors import RegardError
from regard.interventions.editable import (
    CallLocation,
    EditableAttention,
    Product,
    number_rows,
    scatter,
)

ROUNDING = 100  # units of the last digit by which two orders of a sum may differ


class EdgeAttention(EditableAttention):
    """Attention over edges, whose products with values are summed by index again.

    Weights are a matrix (batch, head, query, key). That of a pair of nodes is shared by the edges
    between them as before; pairs without an edge have none.

    Args:
        location: its module.
        call: the weights of edges.
        context: the sum, in the model's layout.
        edited: weights that another context replaced.
        multiplication: of the weights with values.
        summed: the sum of these products by index.
    """

    def __init__(
        self,
        location: CallLocation,
        call: EdgeWeights,
        context: Tensor,
        edited: EditedWeights,
        multiplication: Multiplication,
        summed: ScatterSum,
    ) -> None:
        super().__init__(location, call, context, None, edited)
        self._edges, self._summed = call, summed
        self._source_shape = summed.source.shape
        weights = multiplication.weights
        elements = torch.arange(weights.numel(), device=weights.device).view(weights.shape)
        self._product = Product(
            multiplication.function,
            multiplication.position,
            multiplication.arrange(elements),
            self._sum,
        )
        self._elements = self._find_elements(context)
        with no_autocast(context):
            self._initial = _beyond_rounding(context - self._sum(summed.source), context)

    @property
    def has_parallel_edges(self) -> bool:
        """Whether several edges lead from one node to another."""
        return bool((self._num_edges() > 1).any())

    def _original_weights(self, heads: list[int]) -> Tensor:
        return self._edges.dense(self._of_edges(heads), slice(None))

    def _with_weights(self, heads: list[int], weights: Tensor) -> Tensor:
        product = self._product
        edge_weights = self._share(heads, weights)
        product.weights = scatter(product.weights, product.elements[:, heads], edge_weights)
        context = product.run(product.weights).to(self.context.dtype)
        if self._initial is not None:
            context = context + self._initial
        if self._elements is None:
            return context
        index = self._elements[:, heads]
        return scatter(self.context, index, context.reshape(-1)[index])

    def _of_edges(self, heads: list[int]) -> Tensor:
        """Return the weights (batch, head, edge), with the edits so far."""
        return upcast(self._product.weights.reshape(-1)[self._product.elements[:, heads]])

    def _num_edges(self) -> Tensor:
        """Return the number of edges (query, key) between two nodes."""
        ones = torch.ones_like(self._edges.queries, dtype=torch.float32)
        return self._edges.dense(ones[None, None], slice(None))[0, 0]

    def _share(self, heads: list[int], weights: Tensor) -> Tensor:
        """Return the weights (batch, head, edge) of which a matrix is the sum.

        Raises:
            RegardError: if a pair of nodes without an edge has a weight.
        """
        queries, keys, num_edges = self._edges.queries, self._edges.keys, self._num_edges()
        added = (weights != 0) & (num_edges == 0)
        if added.any():
            query, key = added.nonzero()[0, 2:].tolist()
            raise RegardError(
                f"{self.location.name} has no edge from node {key} to node {query}, which an edit "
                "gives a weight; edits may only change the weights of edges that a graph has"
            )
        before = self._of_edges(heads)
        total = self._edges.dense(before, slice(None))[..., queries, keys]
        is_alone = num_edges[queries, keys] == 1
        equal = 1 / num_edges[queries, keys].expand_as(before)
        shares = torch.where(total == 0, equal, before / total.masked_fill(total == 0, 1.0))
        return weights[..., queries, keys] * shares.masked_fill(is_alone, 1.0)

    def _sum(self, product: Tensor) -> Tensor:
        """Sum products with values by index, in another shape if the model reshaped them."""
        dim, source = self._summed.dim, product.reshape(self._source_shape)
        shape = list(source.shape)
        shape[dim] = self._summed.num_rows
        return source.new_zeros(shape).index_add(dim, self._summed.rows, source)

    def _find_elements(self, context: Tensor) -> Tensor | None:
        """Return the index in the context of each element (batch, head, query, value).

        Found by running the product with values of 1 and a single edge, whose weights number the
        heads. None if the product sums over heads.
        """
        batch, heads, num_edges = self._product.elements.shape
        if not num_edges:
            return None
        width = context.numel() // (batch * heads * self._summed.num_rows)
        ids = number_rows(batch * heads, context.device)
        if ids is None:
            return None
        products, order = self._product.probe(context, self._product.elements[..., 0], ids)
        count = len(ids) * width
        if products[:-count].any() or not torch.equal(
            products[-count:], ids.repeat_interleave(width)
        ):
            return None
        first = order[-count:].view(batch, heads, 1, width)
        queries = torch.arange(self._summed.num_rows, device=context.device)
        stride = context.shape[self._summed.dim + 1 :].numel()
        return first + (queries - self._edges.queries[0])[:, None] * stride


def _beyond_rounding(initial: Tensor, context: Tensor) -> Tensor | None:
    """Return what a sum was added to; None if that is zero but for rounding."""
    tolerance = ROUNDING * torch.finfo(context.dtype).eps
    is_zero = initial.abs().amax() <= tolerance * context.abs().amax() if len(context) else True
    return None if is_zero else initial
