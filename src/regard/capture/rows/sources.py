"""Sources of tensors: the functions that arranged their elements, to be run again on indices.

The elements of a tensor come from those of an anchor, the tensor that was projected to queries,
keys or values. If it must be known which ones, the functions in between are run again on indices of
the anchor's elements, which then lie where the elements do: also after skewing, overlapping chunks,
and parts that were written to another tensor or picked by an index.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import count
from math import prod
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.nn import functional

from regard.capture.functions import Letters

Anchors = frozenset["Anchor"]
Shape = tuple[int, ...]

_numbers = count()


@runtime_checkable
class Source(Protocol):
    """Where the elements of a tensor come from.

    Attributes:
        shape: of the tensor.
        anchors: the tensors that its elements may come from.
        depth: number of functions since the anchors.
        is_compared: whether it compares the rows of two tensors, as scores do.
        is_reordered: whether rows may have been brought to another order.
        width: number of features of each row as it was made, or projected last; 0 if unknown.
        num_elements: of all rows then.
    """

    shape: Shape
    anchors: Anchors
    depth: int
    is_compared: bool
    is_reordered: bool
    width: int
    num_elements: int

    def indices(self, of: "Indices") -> Tensor | None:
        """Return for each element one more than its index in the anchor; 0 if it has none.

        It is -1 if an element was computed from several. None if none comes from this anchor.
        """
        ...


class Indices:
    """The indices of one anchor's elements in tensors that come from it.

    Args:
        anchor: whose elements are counted.
        side: 0 or 1, whether scores count as rows of the first or second operand of their product.
    """

    def __init__(self, anchor: "Anchor", side: int) -> None:
        self.anchor, self.side, self.device = anchor, side, anchor.device
        self._known: dict[int, Tensor | None] = {}

    def of(self, source: Source) -> Tensor | None:
        """Return the indices in a tensor; None if none of its elements comes from the anchor."""
        if source is not self.anchor and self.anchor not in source.anchors:
            return None
        if id(source) not in self._known:
            self._known[id(source)] = source.indices(self)
        return self._known[id(source)]

    def or_zeros(self, source: Source) -> Tensor:
        """Return the indices in a tensor, 0 where there are none."""
        found = self.of(source)
        if found is None:
            return torch.zeros(source.shape, dtype=torch.long, device=self.device)
        return found


class Anchor:
    """A tensor whose elements are counted.

    Args:
        shape: of the tensor.
        device: of the tensor.
        width: number of features of each row, 0 if it is not known.
        is_parameter: whether it is a parameter or buffer of the model.

    Attributes:
        num_elements: of the tensor.
        order: sorts anchors: those of the model's input before parameters, then as they were met.
    """

    __slots__ = (
        *("anchors", "depth", "device", "is_compared", "is_parameter", "is_reordered"),
        *("num_elements", "order", "shape", "width"),
    )

    def __init__(
        self, shape: Shape, device: torch.device, width: int = 0, *, is_parameter: bool = False
    ) -> None:
        self.shape, self.device, self.is_parameter = shape, device, is_parameter
        self.width, self.num_elements = width, prod(shape)
        self.depth, self.is_compared, self.is_reordered = 0, False, False
        self.order = is_parameter, next(_numbers)
        self.anchors: Anchors = frozenset()  # itself, see `anchors_of`

    def indices(self, of: Indices) -> Tensor | None:
        """Return all indices in their order."""
        count = torch.Size(self.shape).numel()
        return torch.arange(1, count + 1, device=of.device).view(self.shape)


class Empty:
    """A tensor of numbers that come from no other, as zeros do."""

    __slots__ = (
        *("anchors", "depth", "is_compared", "is_reordered", "num_elements", "shape", "width"),
    )

    def __init__(self, shape: Shape) -> None:
        self.shape, self.depth, self.width, self.num_elements = shape, 0, 0, 0
        self.is_compared = self.is_reordered = False
        self.anchors: Anchors = frozenset()

    def indices(self, of: Indices) -> Tensor | None:
        """Return None: it has no elements of an anchor."""
        return None


class _Derived(ABC):
    """Base of sources that are made of others."""

    __slots__ = (
        *("anchors", "depth", "is_compared", "is_reordered", "num_elements", "shape", "width"),
    )

    def __init__(self, sources: Sequence[Source], shape: Shape) -> None:
        self.shape, self.anchors = shape, anchors_of(sources)
        self.width, self.num_elements = sources[0].width, sources[0].num_elements
        if len(sources) == 1:  # most of them, by far
            self.depth, self.is_compared = sources[0].depth + 1, sources[0].is_compared
            self.is_reordered = sources[0].is_reordered
        else:
            self.depth = 1 + max(x.depth for x in sources)
            self.is_compared = any(x.is_compared for x in sources)
            self.is_reordered = any(x.is_reordered for x in sources)

    @abstractmethod
    def indices(self, of: Indices) -> Tensor | None:
        """Return the indices of an anchor's elements; see `Source`."""


class Rearranged(_Derived):
    """What a function made of the elements of its arguments, without computing new ones.

    Args:
        function: to run again.
        args: its arguments, with sources in the place of tensors of numbers.
        kwargs: its other arguments.
        shape: of the result.
        item: index of the result, if there are several.
        writes: whether it writes into its first argument.
        sources: among the arguments.
    """

    __slots__ = ("_args", "_function", "_item", "_kwargs", "_writes")

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        shape: Shape,
        item: int | None,
        writes: bool,
        sources: Sequence[Source],
    ) -> None:
        super().__init__(sources, shape)
        self._function, self._args, self._kwargs = function, args, kwargs
        self._item, self._writes = item, writes

    def indices(self, of: Indices) -> Tensor | None:
        """Run the function on indices."""
        args = [_replaced(x, of) for x in self._args]
        if self._writes:
            args[0] = args[0].clone()
        result = self._function(*args, **self._kwargs)
        if self._writes:
            result = args[0]
        found: Tensor = result if self._item is None else result[self._item]
        return found if found.shape == self.shape else None


class Combined(_Derived):
    """A function of several tensors element by element."""

    __slots__ = ("_sources",)

    def __init__(self, sources: Sequence[Source]) -> None:
        super().__init__(sources, sources[0].shape)
        self._sources = sources

    def indices(self, of: Indices) -> Tensor | None:
        """Return the indices that the tensors agree on, and -1 where they differ."""
        found: Tensor | None = None
        for other in map(of.of, self._sources):
            if found is None or other is None:
                found = other if found is None else found
                continue
            differs = (found != 0) & (other != 0) & (found != other)
            found = torch.where(found == 0, other, found).masked_fill(differs, -1)
        return found


class Projected(_Derived):
    """A projection of each row of a tensor."""

    __slots__ = ("_source",)

    def __init__(self, source: Source, shape: Shape) -> None:
        super().__init__([source], shape)
        self.width, self.num_elements = shape[-1], prod(shape)
        self._source = source

    def indices(self, of: Indices) -> Tensor | None:
        """Return the index of the first element of each row."""
        rows = of.of(self._source)
        return None if rows is None else rows[..., :1].expand(self.shape)


class Compared(_Derived):
    """A product of two tensors, as of queries and keys."""

    __slots__ = ("_result", "_sources", "_terms")

    def __init__(
        self,
        sources: tuple[Source, Source],
        terms: tuple[Letters, Letters],
        result: Letters,
        shape: Shape,
    ) -> None:
        super().__init__(sources, shape)
        self._sources, self._terms, self._result = sources, terms, result
        self.is_compared = True

    def indices(self, of: Indices) -> Tensor | None:
        """Return the indices of the rows of one operand."""
        rows, term = of.of(self._sources[of.side]), self._terms[of.side]
        if rows is None:
            return None
        for n in reversed(range(len(term))):
            rows = rows if term[n] in self._result else rows.select(n, 0)
        kept = [letter for letter in term if letter in self._result]
        rows = rows.permute([kept.index(x) for x in self._result if x in kept])
        for n, letter in enumerate(self._result):
            rows = rows if letter in kept else rows.unsqueeze(n)
        return rows.expand(self.shape)


def anchors_of(sources: Sequence[Source]) -> Anchors:
    """Return the anchors of several sources."""
    if len(sources) == 1:
        source = sources[0]
        return frozenset((source,)) if isinstance(source, Anchor) else source.anchors
    found: set[Anchor] = set()
    for source in sources:
        if isinstance(source, Anchor):
            found.add(source)
        else:
            found |= source.anchors
    return frozenset(found)


def pad_with_zeros(tensor: Tensor, padding: Any, mode: str = "constant", *_: Any) -> Tensor:
    """Pad indices as `torch.nn.functional.pad` does, but with 0 whatever the value."""
    if mode == "constant":
        return functional.pad(tensor, padding)
    padded: Tensor = functional.pad(tensor.double(), padding, mode).long()
    return padded


def stride_indices(
    tensor: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
    *,
    strides: Sequence[int],
    offset: int,
) -> Tensor:
    """Read indices as `torch.as_strided` reads a tensor that lies in memory with some strides.

    Args:
        tensor: of indices.
        size: of the result.
        stride: of the result.
        storage_offset: of the result.
        strides: of the tensor that was read.
        offset: of that tensor.
    """
    start = 0 if storage_offset is None else storage_offset - offset
    extents = (
        1 + sum((n - 1) * step for n, step in zip(*pair, strict=True))
        for pair in ((tensor.shape, strides), (size, stride))
    )
    memory = tensor.new_zeros(max(extents) + start)
    memory.as_strided(tensor.shape, strides).copy_(tensor)
    return memory.as_strided(size, stride, start)


def unfold_indices(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Return the sliding windows of an image of indices."""
    windows: Tensor = functional.unfold(tensor.double(), *args, **kwargs).long()
    return windows


def _replaced(value: Any, of: Indices) -> Any:
    """Return an argument with the indices of each source in it."""
    if isinstance(value, Anchor | Empty | _Derived):
        return of.or_zeros(value).contiguous()
    if type(value) in (list, tuple):
        return type(value)(_replaced(x, of) for x in value)
    return value
