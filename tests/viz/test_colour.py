import pytest
from matplotlib import colormaps

from regard.viz.colour import (
    BLACK,
    SHADES,
    WHITE,
    XTERM,
    XTERM_DARK_COUNT,
    cividis,
    contrast_colour,
    detect_depth,
    paint,
    paint_half_block,
    relative_luminance,
    resolve_depth,
    shade,
)

STEPS = [step / 100 for step in range(101)]


def xterm(index):
    """Return the colour of an xterm index from 16 on: a 6 × 6 × 6 cube, then greys."""
    if index >= 232:
        return (8 + 10 * (index - 232),) * 3
    levels = (0, 95, 135, 175, 215, 255)
    red, rest = divmod(index - 16, 36)
    return levels[red], levels[rest // 6], levels[rest % 6]


def contrast_ratio(one, other):
    """Return the contrast ratio of two colours (WCAG 2)."""
    dark, light = sorted(map(relative_luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def matplotlib_cividis(intensity):
    return tuple(255 * part for part in colormaps["cividis"](intensity)[:3])


def test_nine_samples_approximate_cividis():
    for intensity in STEPS:
        assert cividis(intensity) == pytest.approx(matplotlib_cividis(intensity), abs=19)
        assert relative_luminance(cividis(intensity)) == pytest.approx(
            relative_luminance(tuple(map(round, matplotlib_cividis(intensity)))), abs=0.02
        )


def test_luminance_increases_along_the_scale():
    luminances = [relative_luminance(cividis(intensity)) for intensity in STEPS]
    assert luminances == sorted(luminances)
    of_xterm = [relative_luminance(xterm(index)) for index in XTERM]
    assert of_xterm == sorted(set(of_xterm))


def test_intensity_beyond_the_scale_is_clamped():
    assert cividis(-0.5) == cividis(0.0)
    assert cividis(1.5) == cividis(1.0)
    assert paint("x", 1.5, "256") == paint("x", 1.0, "256")
    assert shade(1.5) == SHADES[-1]


def test_text_contrast_is_at_least_wcag_aa_on_every_colour():
    for intensity in STEPS:
        assert contrast_ratio(cividis(intensity), contrast_colour(cividis(intensity))) >= 4.5
    for step, index in enumerate(XTERM):
        assert contrast_ratio(xterm(index), WHITE if step < XTERM_DARK_COUNT else BLACK) >= 4.5


def test_relative_luminance_agrees_with_wcag():
    assert relative_luminance(WHITE) == pytest.approx(1)
    assert relative_luminance(BLACK) == 0
    assert relative_luminance((255, 0, 0)) == pytest.approx(0.2126)


def test_paint_sets_background_and_foreground_and_resets_them():
    assert paint("hi", 0.0, "24-bit") == "\x1b[48;2;0;34;78;38;2;255;255;255mhi\x1b[0m"
    assert paint("hi", 1.0, "256") == "\x1b[48;5;227;38;5;16mhi\x1b[0m"
    assert paint("hi", 0.5, "plain") == "hi"


def test_shades_get_darker_with_intensity():
    assert [shade(intensity) for intensity in (0.0, 0.35, 1.0)] == [" ", "-", "@"]


@pytest.mark.parametrize(
    ("environment", "is_terminal", "depth"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, True, "24-bit"),
        ({"TERM": "xterm-256color", "COLORTERM": "24bit"}, True, "24-bit"),
        ({"TERM": "xterm-direct"}, True, "24-bit"),
        ({"TERM": "tmux-256color"}, True, "256"),
        ({"TERM": "vt100"}, True, "plain"),
        ({"TERM": "dumb", "COLORTERM": "truecolor"}, True, "plain"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, False, "plain"),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, True, "plain"),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, True, "256"),
        ({"FORCE_COLOR": "1"}, False, "256"),
        ({"FORCE_COLOR": "1", "COLORTERM": "truecolor"}, False, "24-bit"),
        ({"FORCE_COLOR": "0", "TERM": "xterm-256color"}, False, "plain"),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, "plain"),
        ({}, True, "plain"),
    ],
)
def test_environment_determines_the_colour_depth(environment, is_terminal, depth):
    assert detect_depth(environment, is_terminal) == depth


def test_depth_without_standard_output_is_that_of_a_file(monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setattr("sys.stdout", None)
    assert resolve_depth(None) == detect_depth({}, is_terminal=False)


def test_half_block_has_a_colour_for_each_half():
    assert paint_half_block(1.0, 0.0, "24-bit") == "\x1b[38;2;254;232;56;48;2;0;34;78m▀\x1b[0m"
    assert paint_half_block(1.0, 0.0, "256") == "\x1b[38;5;227;48;5;17m▀\x1b[0m"
    assert paint_half_block(0.0, None, "256") == "\x1b[38;5;17m▀\x1b[0m"
