"""The image that a token list stands for: its pixels, and the grid of its patches."""

import base64
import binascii
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from regard._support.text import shorten
from regard.errors import RegardError
from regard.trace.quantization import Array
from regard.trace.value_checks import is_index

MAX_IMAGE_SIDE = 512
"""Largest width and height of an image in pixels: 768 KiB as RGB."""


@dataclass(frozen=True, slots=True, eq=False)
class PatchImage:
    """An image whose patches are tokens, so that attention can be drawn over it.

    Args:
        pixels: (height, width) in grey or (height, width, 3), as integers from 0 to 255 or floats
            from 0 to 1. Larger images than 512 × 512 must be reduced before.
        grid: rows and columns of patches, in the order of the tokens, row by row.
        first: position of the first patch in the token list; 1 after a class token.

    Raises:
        RegardError: if pixels or grid are out of range.

    Example:
        >>> image = PatchImage(np.zeros((8, 8)), grid=(4, 4), first=1)
        >>> image.pixels.shape, image.num_patches
        ((8, 8, 3), 16)
    """

    pixels: Array = field(repr=False)  # (height, width, 3), uint8
    grid: tuple[int, int]
    first: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "pixels", _to_rgb(self.pixels))  # the dataclass is frozen
        grid = self.grid
        is_grid = isinstance(grid, tuple) and len(grid) == 2 and all(map(is_index, grid))
        if not is_grid or not all(
            1 <= n <= size for n, size in zip(grid, self.pixels.shape, strict=False)
        ):
            raise RegardError(
                "grid must be rows and columns of patches, at most one per pixel of "
                f"{self.pixels.shape[:2]}, but it is {shorten(grid)}"
            )
        if not is_index(self.first):
            raise RegardError(f"first must be a position, 0 or more, but it is {self.first!r}")

    @property
    def num_patches(self) -> int:
        """Number of patches."""
        return self.grid[0] * self.grid[1]

    def patch_values(self, values: Array) -> Array:
        """Return the values of the patches, (row, column), from one value per token."""
        return np.asarray(values[self.first : self.first + self.num_patches]).reshape(self.grid)


def check_images(images: Any, tokens: Any) -> None:
    """Require that images belong to token lists that have all their patches."""
    for name, image in images.items():
        if name not in tokens:
            raise RegardError(f"the image of {shorten(name)} belongs to no token list")
        if image.first + image.num_patches > len(tokens[name]):
            raise RegardError(
                f"the image of {shorten(name)} has {image.num_patches} patches from position "
                f"{image.first} on, but there are {len(tokens[name])} tokens"
            )


def image_to_dict(image: PatchImage) -> dict[str, Any]:
    """Return an image as JSON-serializable data."""
    height, width, _ = image.pixels.shape
    return {
        "height": height,
        "width": width,
        "data": base64.b64encode(image.pixels.tobytes()).decode("ascii"),
        "grid": list(image.grid),
        "first": image.first,
    }


def image_from_dict(record: dict[str, Any]) -> PatchImage:
    """Build an image from what `image_to_dict` returned; the sizes are checked before the data."""
    height, width, grid = record["height"], record["width"], record["grid"]
    if not all(is_index(n) and 1 <= n <= MAX_IMAGE_SIDE for n in (height, width)):
        raise RegardError(
            f"height and width must be from 1 to {MAX_IMAGE_SIDE}, not {shorten((height, width))}"
        )
    expected = 3 * height * width
    data = record["data"]
    if not isinstance(data, str) or len(data) > 4 * (expected + 2) // 3 + 4:
        raise RegardError(f"data of an image must be {expected} bytes in base64")
    try:
        pixels = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise RegardError(f"data of an image must be {expected} bytes in base64") from error
    if len(pixels) != expected:
        raise RegardError(f"data of an image must be {expected} bytes, not {len(pixels)}")
    if not isinstance(grid, list):
        raise RegardError(f"grid must be rows and columns of patches, but it is {shorten(grid)}")
    array = np.frombuffer(pixels, np.uint8).reshape(height, width, 3)
    return PatchImage(array, tuple(grid), record.get("first", 0))


def _to_rgb(pixels: Any) -> Array:
    """Convert grey or RGB pixels, integers or floats, to uint8 (height, width, 3)."""
    array = np.asarray(pixels)
    is_image = array.ndim == 2 or (array.ndim == 3 and array.shape[2] == 3)
    sides = array.shape[:2]
    if not is_image or not all(1 <= n <= MAX_IMAGE_SIDE for n in sides):
        raise RegardError(
            "pixels must be (height, width) or (height, width, 3) with sides from 1 to "
            f"{MAX_IMAGE_SIDE}, but their shape is {array.shape}"
        )
    is_float = np.issubdtype(array.dtype, np.floating)
    if not is_float and not np.issubdtype(array.dtype, np.integer):
        raise RegardError(f"pixels must be integers or floats, but they are {array.dtype}")
    largest = 1 if is_float else 255
    if not ((array >= 0) & (array <= largest)).all():
        raise RegardError(f"pixels of {array.dtype} must be from 0 to {largest}")
    scaled = np.rint(array * 255) if is_float else array
    rgb = scaled[..., None].repeat(3, axis=-1) if array.ndim == 2 else scaled
    return np.ascontiguousarray(rgb, dtype=np.uint8)
