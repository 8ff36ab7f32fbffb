"""Position information for attention: sinusoidal, learned, rotary (RoPE) and ALiBi.

`Sinusoidal` and `Learned` add a vector to each embedding, `Rotary` rotates queries and keys, and
`ALiBi` adds a bias to the scores. All of them take an `offset`, the position of the first vector,
for incremental decoding.
"""

from abc import ABC, abstractmethod
from math import inf

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard._support.arguments import check_positive
from regard._support.text import format_settings
from regard._support.torch_modes import has_float64, in_functorch, is_traced
from regard.errors import RegardError

Vectors = Float[Tensor, "*batch position width"]

__all__ = ["ALiBi", "Learned", "Rotary", "Sinusoidal", "rotate", "sinusoidal"]


def sinusoidal(
    length: int, width: int, offset: int = 0, base: float = 10_000.0
) -> Float[Tensor, "position width"]:
    """Return sinusoidal position vectors (Vaswani et al. 2017, section 3.5).

    Column 2i is sin(position / base^(2i/width)), column 2i + 1 the cosine of the same.

    Args:
        length: number of positions.
        width: number of columns.
        offset: the first position.
        base: the longest wavelength is 2π · base.

    Raises:
        RegardError: if `length`, `width` or `offset` is negative, or `base` is not above 0.

    Example:
        >>> sinusoidal(2, 4)
        tensor([[0.0000, 1.0000, 0.0000, 1.0000],
                [0.8415, 0.5403, 0.0100, 0.9999]])
    """
    _check_not_negative(length=length, offset=offset)
    _check_waves(width, base)
    return _waves(torch.arange(offset, offset + length), width, base)


def _waves(positions: Int[Tensor, " position"], width: int, base: float) -> Vectors:
    angles = _angles(positions, width, base)
    waves = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)
    return waves[:, :width].to(torch.get_default_dtype()).to(positions.device)


class _PositionTable(nn.Module, ABC):
    """Base of fixed positions: a table with a row for each, which grows.

    The table is no buffer: buffers of a model's copies are assumed to have one size.
    """

    table: Tensor

    @abstractmethod
    def compute(self, length: int) -> Tensor:
        """Return the table of the first positions, on the CPU."""

    def rows(self, start: int, end: int, like: Tensor) -> Tensor:
        """Return the rows of positions from `start` to before `end`, on the device of `like`."""
        table = self.table  # read once: another thread may replace it by a shorter one
        if len(table) < end or table.device != like.device:
            # doubling: step-by-step decoding then rebuilds the table a few times, not every step
            with torch.inference_mode(False):  # it outlives this call
                table = self.compute(2 * end)
                table = table if has_float64(like.device) else table.float()
                table = table.to(like.device)
            if not (in_functorch() or is_traced(table)):  # whose wrapper of the tensor would stay
                self.table = table
        return table[start:end].to(like.dtype)


class Sinusoidal(_PositionTable):
    """Sinusoidal positions, added to vectors; any length and offset (Vaswani et al. 2017).

    Args:
        width: of the vectors.
        base: the longest wavelength is 2π · base.

    Raises:
        RegardError: if `width` is negative, or `base` is not above 0.

    Example:
        >>> Sinusoidal(12)(torch.zeros(2, 5, 12), offset=3).shape
        torch.Size([2, 5, 12])
    """

    def __init__(self, width: int, base: float = 10_000.0) -> None:
        super().__init__()
        _check_waves(width, base)
        self.width = width
        self.base = base
        self.table = self.compute(0)

    def compute(self, length: int) -> Float[Tensor, "position width"]:
        """Return the waves of the first positions."""
        return _waves(torch.arange(length, device="cpu"), self.width, self.base)

    def extra_repr(self) -> str:
        """Show the width and the base."""
        return format_settings({"width": self.width, "base": self.base})

    def forward(self, vectors: Vectors, offset: int = 0) -> Vectors:
        """Add to each vector the waves of its position; `offset` is the first position."""
        _check(vectors, self.width, offset)
        return vectors + self.rows(offset, offset + vectors.shape[-2], vectors)


class Learned(nn.Module):
    """A learned vector per position, added to vectors; up to a fixed length (Gehring et al. 2017).

    Args:
        length: number of positions.
        width: of the vectors.

    Raises:
        RegardError: if a number is below 1.

    Example:
        >>> Learned(9, 12).max_length
        9
    """

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        check_positive(length=length, width=width)
        self.table = nn.Parameter(torch.empty(length, width))
        nn.init.normal_(self.table, std=width**-0.5)

    @property
    def max_length(self) -> int:
        """The number of positions in the table."""
        return len(self.table)

    def extra_repr(self) -> str:
        """Show the size of the table."""
        return format_settings({"length": len(self.table), "width": self.table.shape[1]})

    def forward(self, vectors: Vectors, offset: int = 0) -> Vectors:
        """Add to each vector that of its position; `offset` is the first position.

        Raises:
            RegardError: if a position is beyond the table.
        """
        length, width = self.table.shape
        _check(vectors, width, offset)
        end = offset + vectors.shape[-2]
        if end > length:
            raise RegardError(
                f"positions must be below {length}, the length of the learned table, but the "
                f"last is {end - 1}; use Learned({end}, {width}) or Sinusoidal({width})"
            )
        return vectors + self.table[offset:end]


class Rotary(_PositionTable):
    """Rotary position embedding, RoPE (Su et al. 2021): rotates queries and keys by position.

    The dot product of two rotated vectors then depends on their distance alone. Pairs of
    components are rotated together: component i with i + width / 2, or neighbours if `interleaved`.

    Args:
        width: number of leading components that are rotated, an even number; the others stay.
        base: the longest wavelength is 2π · base.
        interleaved: rotate neighbouring components.

    Raises:
        RegardError: if `width` is odd or negative, or `base` is not above 0.

    Example:
        >>> Rotary(4)(torch.ones(1, 3, 6), offset=2).shape
        torch.Size([1, 3, 6])
    """

    def __init__(self, width: int, base: float = 10_000.0, interleaved: bool = False) -> None:
        super().__init__()
        _check_waves(width, base)
        if width % 2:
            raise RegardError(f"width must be even, to rotate pairs, but it is {width}")
        self.width = width
        self.base = base
        self.interleaved = interleaved
        self.table = self.compute(0)

    def compute(self, length: int) -> Float[Tensor, "position column"]:
        """Return the factors of the first positions: cosines, and after them signed sines."""
        angles = _angles(torch.arange(length, device="cpu"), self.width, self.base)
        return torch.cat(_factors(angles.cos(), angles.sin(), self._pair_axis), dim=-1)

    def forward(self, vectors: Vectors, offset: int | Int[Tensor, " position"] = 0) -> Vectors:
        """Rotate each vector by the angles of its position.

        Args:
            vectors: `(*batch, position, width)`.
            offset: the first position, with the others following, or a tensor of all positions.

        Raises:
            RegardError: if the vectors are too narrow, or `offset` is a negative number.
        """
        if isinstance(offset, Tensor):
            angles = _angles(offset, self.width, self.base)
            cosines, sines = (
                factors.to(vectors.dtype).to(offset.device)
                for factors in (angles.cos(), angles.sin())
            )
            return rotate(vectors, cosines, sines, self.interleaved)
        _check_not_negative(offset=offset)
        if torch.compiler.is_compiling():  # a table that grows would be compiled again and again
            end = offset + vectors.shape[-2]
            return self(vectors, torch.arange(offset, end, device=vectors.device))  # type: ignore[no-any-return]
        _check_rotated_width(vectors, self.width)
        factors = self.rows(offset, offset + vectors.shape[-2], vectors)
        cosines, signed_sines = factors.chunk(2, dim=-1)
        return _rotate(vectors, cosines, signed_sines, self._pair_axis)

    def extra_repr(self) -> str:
        """Show width and base, and which components are rotated together."""
        settings = {"width": self.width, "base": self.base, "interleaved": self.interleaved}
        return format_settings(settings)

    @property
    def _pair_axis(self) -> int:
        return -1 if self.interleaved else -2


def rotate(vectors: Vectors, cosines: Tensor, sines: Tensor, interleaved: bool = False) -> Vectors:
    """Rotate the leading components of each vector, pair by pair.

    Args:
        vectors: `(*batch, position, width)`.
        cosines: of the angles, (position, pair), with leading axes that broadcast to the vectors'.
        sines: of the angles, shaped like the cosines.
        interleaved: pairs are neighbours instead of the two halves.

    Raises:
        RegardError: if there are more pairs than the vectors have.

    Example:
        >>> quarter_turn = torch.zeros(1, 1), torch.ones(1, 1)
        >>> rotate(torch.tensor([[1.0, 0.0]]), *quarter_turn)
        tensor([[0., 1.]])
    """
    _check_rotated_width(vectors, 2 * cosines.shape[-1])
    cosines, sines = cosines.to(vectors.dtype), sines.to(vectors.dtype)
    pair_axis = -1 if interleaved else -2
    cosines, signed_sines = _factors(cosines, sines, pair_axis)
    return _rotate(vectors, cosines, signed_sines, pair_axis)


def _check_rotated_width(vectors: Tensor, width: int) -> None:
    if width > vectors.shape[-1]:
        raise RegardError(
            f"cosines rotate {width} components, but vectors have a width of {vectors.shape[-1]}"
        )


def _factors(cosines: Tensor, sines: Tensor, pair_axis: int) -> tuple[Tensor, Tensor]:
    """Return what each component, and the other of its pair, is multiplied with."""
    both = torch.stack([cosines, cosines], dim=pair_axis), torch.stack([-sines, sines], pair_axis)
    return both[0].flatten(-2), both[1].flatten(-2)


def _rotate(vectors: Tensor, cosines: Tensor, signed_sines: Tensor, pair_axis: int) -> Tensor:
    width = cosines.shape[-1]
    rotated, rest = vectors[..., :width], vectors[..., width:]
    # the other component of each pair
    if pair_axis == -1:
        others = rotated.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)
    else:
        others = rotated.roll(width // 2, dims=-1)
    result = torch.addcmul(rotated * cosines, others, signed_sines)
    return torch.cat([result, rest], dim=-1) if rest.shape[-1] else result


class ALiBi(nn.Module):
    """Attention with linear biases (Press et al. 2022): each head prefers near keys.

    Head h of n adds `-slope · |query - key|` to the scores, with slopes 2^(-8/n), 2^(-16/n), …

    Args:
        heads: number of heads.

    Raises:
        RegardError: if `heads` is below 1.

    Example:
        >>> ALiBi(8)(queries=1, keys=3, offset=2)[0, 0]
        tensor([[-1.0000, -0.5000, -0.0000]])
    """

    _device_tag: Tensor

    def __init__(self, heads: int) -> None:
        super().__init__()
        check_positive(heads=heads)
        self.heads = heads
        # an empty buffer follows .to(device), and has no values that a copy from meta would lack
        self.register_buffer("_device_tag", torch.empty(0), persistent=False)

    def extra_repr(self) -> str:
        """Show the number of heads."""
        return format_settings({"heads": self.heads})

    @property
    def slopes(self) -> Float[Tensor, " head"]:
        """How fast each head's bias falls with distance."""
        return self._device_tag.new_tensor(_slopes(self.heads))

    def forward(
        self, queries: int, keys: int, offset: int | None = None
    ) -> Float[Tensor, "1 head query key"]:
        """Return the bias of consecutive queries and keys.

        Args:
            queries: number of queries.
            keys: number of keys.
            offset: index of the key at the first query's own position; 0 by default, if there
                are as many queries as keys.

        Raises:
            RegardError: if the numbers differ, and there is no offset.
        """
        if offset is None and queries != keys:
            raise RegardError(
                f"ALiBi needs as many queries as keys, or offset= for the key at which the first "
                f"query is, but there are {queries} queries and {keys} keys"
            )
        device = self._device_tag.device
        query_positions = torch.arange(queries, device=device) + (offset or 0)
        return self.between(query_positions, torch.arange(keys, device=device)[None])

    def between(
        self, queries: Int[Tensor, " query"], keys: Int[Tensor, "batch key"]
    ) -> Float[Tensor, "batch head query key"]:
        """Return the bias between queries and keys at these positions."""
        distance = queries[:, None] - keys[:, None, None]
        return -self.slopes[:, None, None] * distance.abs()


def _slopes(heads: int) -> list[float]:
    """Return slopes evenly spaced in their logarithm; heads past a power of two go halfway."""
    power = 1 << (heads.bit_length() - 1)
    slopes = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    halfway = [2 ** (-4 * (2 * i + 1) / power) for i in range(heads - power)]
    return slopes + halfway


def _angles(positions: Tensor, width: int, base: float) -> Float[Tensor, "position pair"]:
    """Return position times frequency of each pair of columns, in float64 for long sequences.

    They are computed on the CPU if the positions' device has no float64.
    """
    positions = positions if has_float64(positions.device) else positions.cpu()
    pairs = torch.arange((width + 1) // 2, dtype=torch.float64, device=positions.device)
    return positions[:, None] * base ** (-2 * pairs / max(width, 1))


def _check(vectors: Tensor, width: int, offset: int) -> None:
    if vectors.shape[-1] != width:
        raise RegardError(f"vectors must have a width of {width}, but it is {vectors.shape[-1]}")
    _check_not_negative(offset=offset)


def _check_waves(width: int, base: float) -> None:
    _check_not_negative(width=width)
    if not 0 < base < inf:
        raise RegardError(f"base must be above 0 and finite, but it is {base}")


def _check_not_negative(**numbers: int) -> None:
    for name, number in numbers.items():
        if number < 0:
            raise RegardError(f"{name} must be 0 or more, but it is {number}")
