"""Data lineage: whether queries and keys were projected from the same rows.

Each tensor that passes the capture mode gets a `Provenance`: the id of its rows, the ids of the
rows that it was projected from, and whether rows were appended to it as in a KV cache. Comparing
the provenance of queries and keys distinguishes self-attention from cross-attention even where both
texts have equal lengths, and a generation step from a call of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count

from torch import Tensor, nn

from regard.capture.functions import (
    CASTS,
    COPIES,
    EXPANSIONS,
    JOINS,
    RESHAPES,
    SLICES,
    SPLITS,
    TRANSPOSES,
    FunctionCall,
    TensorMap,
)

# functions that rearrange, slice, copy or cast elements without computing new ones
_LAYOUT = RESHAPES | TRANSPOSES | EXPANSIONS | SPLITS | SLICES | CASTS | COPIES
_LAYOUT |= {"repeat_interleave", "unfold"}

_PRODUCTS = {"matmul", "__matmul__", "__rmatmul__", "bmm", "einsum", "baddbmm", "mm", "tensordot"}
_PRODUCTS |= {"cdist"}
_APPENDS = {*(JOINS - {"stack"}), "index_copy", "index_copy_", "slice_scatter"}
_APPENDS |= {"__setitem__", "copy_", "scatter", "scatter_"}
_MAX_ORIGINS = 8  # latest origins remembered: cached keys gain one with every generation step

Origins = frozenset[int]
_NO_ORIGINS: Origins = frozenset()


@dataclass(slots=True)
class Provenance:
    """What is known about where a tensor comes from."""

    row_id: int | None = None  # identifies the rows, in whatever layout
    origins: Origins = frozenset()  # ids of the rows that it was projected from
    parents: Origins = frozenset()  # ids that those were projected from: some models project twice
    score_origins: tuple[Origins, Origins] | None = None  # of scores: origins of queries and keys
    from_cache: bool = False  # rows were appended to others; of scores: on one side only


class Lineage:
    """The provenance of all live tensors, updated with each torch function.

    Integers have none: tokens and indices that a model chooses are read as an input is.

    Args:
        is_parameter: whether a tensor is a parameter or a view of one.
        is_constant: whether a tensor is computed from parameters and buffers alone.
    """

    def __init__(
        self,
        is_parameter: Callable[[Tensor], bool] | None = None,
        is_constant: Callable[[Tensor], bool] | None = None,
    ) -> None:
        self._is_parameter = is_parameter or (lambda tensor: isinstance(tensor, nn.Parameter))
        self._is_constant = is_constant or self._is_parameter
        self._provenance = TensorMap[Provenance]()
        self._ids = count()

    def update(self, call: FunctionCall) -> None:
        """Derive the provenance of a function's results from that of the tensors it was given."""
        name, inputs = call.name, call.inputs
        results = inputs[:1] if name == "__setitem__" else call.results
        results = [x for x in results if x.is_floating_point() or x.is_complex()]
        if not inputs or not results:
            return
        projected = self._projected_rows(name, inputs)
        if is_convolution(name) and not (self.is_product(inputs[0]) and keeps_channels(inputs)):
            projected = inputs[0]
        if projected is not None:
            self._set_projection(projected, results)
        elif name in _LAYOUT:
            self._set_rearranged(inputs[0], results)
        else:
            self._set_computed(name, inputs, results)

    def origins(self, tensor: Tensor) -> Origins:
        """Return the ids of the rows that a tensor was projected from, over two projections."""
        provenance = self._provenance.get(tensor)
        return frozenset() if provenance is None else provenance.origins | provenance.parents

    def from_cache(self, keys: Tensor) -> bool:
        """Return whether rows were appended since the projection, as a KV cache does."""
        provenance = self._provenance.get(keys)
        return provenance is not None and provenance.from_cache

    def is_product(self, scores: Tensor) -> bool:
        """Return whether a tensor is computed from a product of two computed tensors."""
        provenance = self._provenance.get(scores)
        return provenance is not None and provenance.score_origins is not None

    def same_rows(self, queries: Tensor, keys: Tensor) -> bool | None:
        """Return whether queries and keys come from the same rows; None if that is unknown."""
        if queries is keys:
            return True
        sides = self.origins(queries), self.origins(keys)
        return bool(sides[0] & sides[1]) if all(sides) else None

    def same_rows_in_scores(self, scores: Tensor) -> bool | None:
        """Return whether scores compare rows with themselves; None if that is unknown."""
        provenance = self._provenance.get(scores)
        if provenance is None:
            return None
        if provenance.score_origins is not None and any(provenance.score_origins):
            queries, keys = provenance.score_origins
            return bool(queries & keys) if queries and keys else None
        return len(provenance.origins) == 1 if provenance.origins else None

    def _set_projection(self, rows: Tensor, results: list[Tensor]) -> None:
        row_id, provenance = self._row_id(rows), self._provenance[rows]
        self._set(results, Provenance(origins=frozenset([row_id]), parents=provenance.origins))

    def _set_rearranged(self, rows: Tensor, results: list[Tensor]) -> None:
        self._row_id(rows)
        known = self._provenance[rows]  # whose rows the results share
        for tensor in results:
            self._provenance[tensor] = known

    def _set_computed(self, name: str, inputs: list[Tensor], results: list[Tensor]) -> None:
        origins, parents, sides, from_cache = _NO_ORIGINS, _NO_ORIGINS, None, False
        for tensor in inputs:
            if (known := self._provenance.get(tensor)) is not None:
                origins = _latest(origins, known.origins)
                parents = _latest(parents, known.parents)
                sides = known.score_origins if sides is None else sides
                from_cache = from_cache or known.from_cache
        if _appends_rows(name, inputs, results):
            from_cache = True
            if not origins:  # no projected keys: a memory before the text, both yet to be projected
                origins = frozenset(self._row_id(x) for x in inputs if x.is_floating_point())
        # angles of rotary positions are products, too, but of rows without an origin
        is_product = name in _PRODUCTS and len(inputs) >= 2
        if is_product and not origins and self._is_rotation(inputs):
            origins = frozenset([self._row_id(inputs[0])])
        if is_product and self._is_parameter(inputs[1]):
            sides = None  # a learned vector scores what was compared or summed before
        elif is_product and not (sides and any(sides)):
            queries, keys = inputs[-2:]
            sides = (self.origins(queries), self.origins(keys))
            from_cache = self.from_cache(queries) != self.from_cache(keys)
        if origins or sides or from_cache:
            self._set(results, Provenance(None, origins, parents, sides, from_cache))

    def _projected_rows(self, name: str, inputs: list[Tensor]) -> Tensor | None:
        """Return the rows that a function projects with parameters, None if it is no projection.

        A projection to width 1 scores a pair of rows, and what is scored has both origins; so
        does a product with a single vector.
        """
        if name == "linear" and len(inputs) >= 2:
            return inputs[0] if inputs[1].shape[0] > 1 else None
        if name == "addmm" and len(inputs) == 3:
            return inputs[1] if inputs[2].shape[-1] > 1 else None
        if name in _PRODUCTS and len(inputs) == 2 and self._is_parameter(inputs[1]):
            is_matrix = inputs[1].ndim > 1 and inputs[1].shape[-1] > 1
            return inputs[0] if is_matrix else None
        return None

    def _is_rotation(self, inputs: list[Tensor]) -> bool:
        """Return whether rows are multiplied with a matrix that is computed from parameters.

        As adapters that rotate what a layer reads. Rows that are constants, too, are none: angles
        of positions are such products.
        """
        rows, matrix = inputs[:2]
        is_matrix = matrix.ndim > 1 and matrix.shape[-1] == matrix.shape[-2] > 1
        return is_matrix and self._is_constant(matrix) and not self._is_constant(rows)

    def _row_id(self, rows: Tensor) -> int:
        provenance = self._provenance.get(rows)
        if provenance is None:
            provenance = self._provenance[rows] = Provenance()
        if provenance.row_id is None:
            provenance.row_id = next(self._ids)
        return provenance.row_id

    def _set(self, results: list[Tensor], provenance: Provenance) -> None:
        for n, tensor in enumerate(results):
            self._provenance[tensor] = replace(provenance) if n else provenance


def is_convolution(name: str) -> bool:
    """Return whether a function is a convolution."""
    return name.startswith("conv")


def keeps_channels(inputs: list[Tensor]) -> bool:
    """Return whether a convolution may mix the heads of scores: 1 × 1, and as many channels."""
    kernel = inputs[1] if len(inputs) > 1 else None
    return kernel is not None and len(kernel) == kernel.shape[1] == kernel.numel() ** 0.5


def _latest(first: Origins, second: Origins) -> Origins:
    """Return the latest of two sets of ids."""
    if not second or first is second:
        return first
    union = first | second
    if len(union) <= _MAX_ORIGINS:
        return second if not first else union
    return frozenset(sorted(union)[-_MAX_ORIGINS:])


def _appends_rows(name: str, inputs: list[Tensor], results: list[Tensor]) -> bool:
    """Return whether a function appends rows; joining the halves of a row (RoPE) is not that."""
    if name not in _APPENDS or len(results) != 1 or len(inputs) < 2:
        return False
    new, out = inputs[-1], results[0]
    return new.ndim > 1 and new.shape[-1:] == out.shape[-1:] and new.shape != out.shape
