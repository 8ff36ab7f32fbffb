"""Where a word stands: sinusoidal, learned, rotary and ALiBi positions."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard._support.functorch import in_functorch

Vectors = Float[Tensor, "*batch position width"]


def sinusoidal(
    length: int, width: int, offset: int = 0, base: float = 10_000.0
) -> Float[Tensor, "position width"]:
    """Write positions as waves (Vaswani et al. 2017, section 3.5).

    Column 2i holds sin(position / base^(2i/width)), column 2i + 1 the cosine of the same.
    """
    angles = _angles(torch.arange(offset, offset + length), width, base)
    waves = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)
    return waves[:, :width].to(torch.get_default_dtype())


class Sinusoidal(nn.Module):
    """Adds waves to vectors, for any length and from any offset."""

    def __init__(self, width: int, base: float = 10_000.0) -> None:
        super().__init__()
        self.width = width
        self.base = base
        # no buffer: it grows, and those of a model's copies are taken to have one size
        self.table = sinusoidal(0, width, base=base)

    def forward(self, vectors: Vectors, offset: int = 0) -> Vectors:
        """Add to each vector the waves of its position, the first of which is `offset`."""
        _check(vectors, self.width, offset)
        end = offset + vectors.shape[-2]
        table = self.table  # held here: another thread may put a shorter one in its place
        if len(table) < end or table.device != vectors.device:
            # doubling makes step-by-step decoding write the table a few times, not every step
            with torch.inference_mode(False):  # it outlives this call
                table = sinusoidal(2 * end, self.width, base=self.base).to(vectors.device)
            if not in_functorch():  # which would wrap it for good
                self.table = table
        return vectors + table[offset:end].to(vectors)


class Learned(nn.Module):
    """Adds a learned vector per position, up to a fixed length (Gehring et al. 2017)."""

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(length, width))
        nn.init.normal_(self.table, std=width**-0.5)

    @property
    def longest(self) -> int:
        """How many positions there are."""
        return len(self.table)

    def forward(self, vectors: Vectors, offset: int = 0) -> Vectors:
        """Add to each vector the one of its position, the first of which is `offset`."""
        length, width = self.table.shape
        _check(vectors, width, offset)
        end = offset + vectors.shape[-2]
        if end > length:
            raise ValueError(
                f"positions must be below {length}, the length of the learned table, but the "
                f"last is {end - 1}; Learned({end}, {width}) or Sinusoidal({width}) would hold it"
            )
        return vectors + self.table[offset:end]


class Rotary(nn.Module):
    """Turns queries and keys by angles that grow with position (Su et al. 2021).

    The dot product of two turned vectors then depends on their distance alone. Pairs of
    numbers are turned together: the two halves of a vector, or neighbours if `interleaved`.
    With `width` below that of the vectors, only their first `width` numbers are turned.
    """

    def __init__(self, width: int, base: float = 10_000.0, interleaved: bool = False) -> None:
        super().__init__()
        if width % 2:
            raise ValueError(f"width must be even, to turn pairs, but it is {width}")
        self.width = width
        self.base = base
        self.interleaved = interleaved

    def forward(self, vectors: Vectors, offset: int | Int[Tensor, " position"] = 0) -> Vectors:
        """Turn each vector by the angles of its position.

        Args:
            offset: the first position, which the others follow, or a tensor of all of them.
        """
        if isinstance(offset, Tensor):
            positions = offset
        else:
            positions = torch.arange(offset, offset + vectors.shape[-2], device=vectors.device)
        angles = _angles(positions, self.width, self.base)
        return rotate(vectors, angles.cos(), angles.sin(), self.interleaved)


def rotate(vectors: Vectors, cosines: Tensor, sines: Tensor, interleaved: bool = False) -> Vectors:
    """Turn the first numbers of each vector, pair by pair, by angles given as cosine and sine.

    Cosines and sines are (position, pair), with leading axes that broadcast to the vectors'.
    """
    turned_width = 2 * cosines.shape[-1]
    if turned_width > vectors.shape[-1]:
        raise ValueError(
            f"cosines turn {turned_width} numbers, but vectors have a width of {vectors.shape[-1]}"
        )
    turned, rest = vectors[..., :turned_width], vectors[..., turned_width:]
    pair_axis = -1 if interleaved else -2
    x, y = turned.unflatten(-1, (-1, 2) if interleaved else (2, -1)).unbind(pair_axis)
    cosines, sines = cosines.to(vectors.dtype), sines.to(vectors.dtype)
    pairs = torch.stack([x * cosines - y * sines, x * sines + y * cosines], dim=pair_axis)
    return torch.cat([pairs.flatten(-2), rest], dim=-1)


class ALiBi(nn.Module):
    """Lets each head prefer near keys, by a bias that falls with distance (Press et al. 2022).

    Head h of n adds -slope · |query - key| to the scores, with slopes 2^(-8/n), 2^(-16/n), …
    """

    here: Tensor

    def __init__(self, heads: int) -> None:
        super().__init__()
        _check_heads(heads)
        self.heads = heads
        # of no size: it tells the device, and has no numbers that an empty copy would lack
        self.register_buffer("here", torch.empty(0), persistent=False)

    @property
    def slopes(self) -> Float[Tensor, " head"]:
        """How fast each head's bias falls."""
        return _slopes(self.heads, self.here)

    def forward(
        self, queries: int, keys: int, offset: int | None = None
    ) -> Float[Tensor, "1 head query key"]:
        """Give the bias of so many queries, the first of which stands on key `offset`."""
        if offset is None and queries != keys:
            raise ValueError(
                f"ALiBi needs as many queries as keys, or offset= to say on which key the first "
                f"query stands, but there are {queries} queries and {keys} keys"
            )
        own = torch.arange(queries, device=self.here.device) + (offset or 0)
        return self.at(own, torch.arange(keys, device=self.here.device)[None])

    def at(
        self, queries: Int[Tensor, " query"], keys: Int[Tensor, "sentence key"]
    ) -> Float[Tensor, "sentence head query key"]:
        """Give the bias between queries and keys that stand at these places."""
        distance = queries[:, None] - keys[:, None, None]
        return -self.slopes[:, None, None] * distance.abs()


def _check_heads(heads: int) -> None:
    if heads < 1:
        raise ValueError(f"heads must be 1 or more, but it is {heads}")


def _slopes(heads: int, here: Tensor) -> Tensor:
    """Space slopes evenly in their logarithm, halfway between for heads past a power of two."""
    power = 1 << (heads.bit_length() - 1)
    slopes = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    between = [2 ** (-4 * (2 * i + 1) / power) for i in range(heads - power)]
    return here.new_tensor(slopes + between)


def _angles(positions: Tensor, width: int, base: float) -> Float[Tensor, "position pair"]:
    """Multiply positions by the frequency of each pair of columns, in float64 for long texts."""
    pairs = torch.arange((width + 1) // 2, dtype=torch.float64, device=positions.device)
    return positions[:, None] * base ** (-2 * pairs / max(width, 1))


def _check(vectors: Tensor, width: int, offset: int) -> None:
    if vectors.shape[-1] != width:
        raise ValueError(f"vectors must have a width of {width}, but it is {vectors.shape[-1]}")
    if offset < 0:
        raise ValueError(f"offset must be 0 or more, the first position, but it is {offset}")
