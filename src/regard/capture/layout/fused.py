"""The axes of `scaled_dot_product_attention`, whose weights no tensor of the model has."""

from dataclasses import replace
from math import prod

from torch import Tensor

from regard.capture.axes import AxisTracker, Factor, Origin, preferred_axis
from regard.capture.functions import Letters
from regard.capture.layout.roles import ROLES, Layout, Piece, Role, weights_layout


class FusedLayout:
    """The roles of the axes of a call of `scaled_dot_product_attention`.

    Args:
        axes: the labels of tensors.
        queries: (…, query, width).
        keys: (…, key, width).
        values: (…, key, value).
    """

    def __init__(self, axes: AxisTracker, queries: Tensor, keys: Tensor, values: Tensor) -> None:
        self._axes = axes
        num_leading = max(queries.ndim, keys.ndim) - 2
        leading: Letters = tuple(range(num_leading, 0, -1))
        own, other = axes.axes(queries), axes.axes(keys)
        labels = []
        for letter in leading:
            assert isinstance(letter, int)
            index = -2 - letter
            axis = own[index] if queries.ndim >= -index else ()
            theirs = other[index] if keys.ndim >= -index else ()
            labels.append(preferred_axis(axis, theirs, other))
        width = own[-1]
        rows = [f for axis in (*labels, own[-2]) for f in axis]
        if not any(f.origin.is_feature for f in rows):
            for factor in width:
                factor.origin.is_feature = True
        known = any(f.origin.is_projected for f in (*width, *axes.axes(values)[-1]))
        self.leading = leading
        self.weights = weights_layout(
            (*leading, "query", "key"), (*labels, own[-2], other[-2]), {"key"}, set(leading), known
        )
        self.is_plain = num_leading == 2 and [
            {piece.role for piece in self.weights.pieces if piece.letter == letter}
            for letter in leading
        ] in ([{"batch"}, {"head"}], [{"batch"}, {"batch"}])

    def rows(self, tensor: Tensor, role: Role) -> Tensor:
        """Return vectors (…, row, width) as (batch · window, head, row, width)."""
        if self.is_plain and tensor.ndim == 4:
            return tensor
        layout = self.layout(tensor, role)
        return layout.arrange(tensor, (*ROLES[:3], role, "value"))

    def mask(self, mask: Tensor) -> Tensor:
        """Return a mask (…, query, key) as (batch · window, head, query, key), broadcastable."""
        mask = mask[(None,) * (len(self.leading) + 2 - mask.ndim)]
        if self.is_plain:
            return mask
        sizes = [self.weights.size(role) for role in ROLES[:2]]
        pieces = self._leading_pieces(mask)
        pieces += [Piece("query", _sized(mask.shape[-2]), "query")]
        pieces += [Piece("key", _sized(mask.shape[-1]), "key")]
        layout = Layout(tuple(pieces))
        own = [layout.size(role) for role in ROLES[:2]]
        arranged = layout.arrange(mask)
        if own == sizes or own == [1, 1]:
            return arranged
        split: Tensor = arranged.unflatten(0, own).expand(*sizes, *arranged.shape[1:])
        return split.flatten(0, 1)

    def layout(self, tensor: Tensor, role: Role) -> Layout:
        """Return the roles of the axes of vectors (…, row, width)."""
        labels = self._axes.axes(tensor)
        pieces = self._leading_pieces(tensor)
        pieces += [Piece(role, factor, role) for factor in (labels[-2] or (None,))]
        pieces += [Piece("value", factor, "value") for factor in (labels[-1] or (None,))]
        return Layout(tuple(pieces))

    def _leading_pieces(self, tensor: Tensor) -> list[Piece]:
        pieces: list[Piece] = []
        labels = self._axes.axes(tensor)
        for letter in self.leading[len(self.leading) + 2 - tensor.ndim :]:
            assert isinstance(letter, int)
            size, axis = tensor.shape[-2 - letter], labels[-2 - letter]
            own = [piece for piece in self.weights.pieces if piece.letter == letter]
            if size == prod(piece.size for piece in own):
                same = [p.size for p in own] == [f.size for f in axis]
                pieces += (
                    [replace(p, factor=f) for p, f in zip(own, axis, strict=True)] if same else own
                )
            else:  # broadcast, or fewer heads of keys than of queries
                roles = [piece.role for piece in own]
                role: Role = "head" if "head" in roles and size > 1 else own[0].role
                pieces.append(Piece(letter, _sized(size), role))
        return pieces


def _sized(size: int) -> Factor | None:
    return None if size == 1 else Factor(Origin(size), size)
