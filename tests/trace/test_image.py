"""Images whose patches are tokens: pixels, grid, and limits of what a file may claim."""

import base64
from dataclasses import replace

import numpy as np
import pytest

from regard.errors import RegardError
from regard.trace import (
    PatchImage,
    TokenList,
    Trace,
    build_translation_trace,
    collapse_special,
    load_trace,
)

TOKENS = TokenList(("[CLS]", *"abcdef"), special=(0,))


def make_trace(image):
    weights = np.full((2, 3, 7), 1 / 7)
    trace = build_translation_trace(TOKENS, "xyz", cross=[weights])
    return replace(trace, images={"source": image})


def test_image_round_trips_through_a_file(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (4, 9, 3))
    make_trace(PatchImage(pixels, grid=(2, 3), first=1)).save(tmp_path / "trace.json.gz")
    image = load_trace(tmp_path / "trace.json.gz").images["source"]
    np.testing.assert_array_equal(image.pixels, pixels)
    assert (image.grid, image.first, image.num_patches) == ((2, 3), 1, 6)


def test_grey_pixels_as_floats_become_rgb_bytes():
    image = PatchImage(np.array([[0.0, 0.5], [1.0, 0.2]]), grid=(1, 2))
    np.testing.assert_array_equal(image.pixels[..., 0], [[0, 128], [255, 51]])
    assert image.pixels.shape == (2, 2, 3)


def test_patch_values_follow_the_grid_row_by_row():
    image = PatchImage(np.zeros((4, 6)), grid=(2, 3), first=1)
    assert image.patch_values(np.arange(7)).tolist() == [[1, 2, 3], [4, 5, 6]]


def test_collapsed_tokens_lose_their_image():
    trace = make_trace(PatchImage(np.zeros((4, 6)), grid=(2, 3), first=1))
    two = replace(TOKENS, special=(0, 1))
    assert not collapse_special(replace(trace, tokens={**trace.tokens, "source": two})).images


@pytest.mark.parametrize(
    ("pixels", "grid", "first", "message"),
    [
        (np.zeros(4), (1, 1), 0, r"their shape is \(4,\)"),
        (np.zeros((513, 4)), (1, 1), 0, "sides from 1 to 512"),
        (np.full((4, 4), 300), (1, 1), 0, "must be from 0 to 255"),
        (np.full((4, 4), np.nan), (1, 1), 0, "must be from 0 to 1"),
        (np.zeros((4, 4), dtype=bool), (1, 1), 0, "integers or floats"),
        (np.zeros((4, 4)), (5, 1), 0, "at most one per pixel"),
        (np.zeros((4, 4)), (2,), 0, "rows and columns of patches"),
        (np.zeros((4, 4)), (2, 2), -1, "first must be a position"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_impossible_images_are_refused(pixels, grid, first, message):
    with pytest.raises(RegardError, match=message):
        PatchImage(pixels, grid, first)


@pytest.mark.parametrize("grid", [(3, 3), (2, 4)])
def test_image_with_more_patches_than_tokens_is_refused(grid):
    with pytest.raises(RegardError, match="but there are 7 tokens"):
        make_trace(PatchImage(np.zeros((9, 9)), grid))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"height": 10**9, "width": 10**9}, "from 1 to 512"),
        ({"height": True}, "from 1 to 512"),
        ({"data": "A" * 10_000}, "must be 72 bytes in base64"),
        ({"data": "!!!!"}, "must be 72 bytes in base64"),
        ({"data": base64.b64encode(bytes(71)).decode()}, "must be 72 bytes, not 71"),
        ({"data": 3}, "must be 72 bytes in base64"),
        ({"grid": 3}, "rows and columns"),
        ({"grid": [2, 10**9]}, "at most one per pixel"),
        ({"first": "x"}, "first must be a position"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_malformed_image_of_a_file_is_refused_by_its_list(change, message):
    record = make_trace(PatchImage(np.zeros((4, 6)), grid=(2, 3), first=1)).to_dict()
    record["images"]["source"] |= change
    with pytest.raises(RegardError, match=f"image of 'source'.*{message}"):
        Trace.from_dict(record)


def test_image_of_no_token_list_is_refused():
    record = make_trace(PatchImage(np.zeros((4, 6)), grid=(2, 3))).to_dict()
    record["images"]["other"] = record["images"].pop("source")
    with pytest.raises(RegardError, match="belongs to no token list"):
        Trace.from_dict(record)
    with pytest.raises(RegardError, match="images must be by token list"):
        Trace.from_dict(record | {"images": [1]})
