import pytest
from matplotlib import colormaps

from regard.viz.colour import (
    BLACK,
    SHADES,
    WHITE,
    XTERM,
    XTERM_DARK,
    cividis,
    contrast_colour,
    depth,
    lightness,
    paint,
    paint_halves,
    shade,
)

STEPS = [step / 100 for step in range(101)]


def xterm(index):
    """The colour that xterm shows for an index from 16 on: a 6 x 6 x 6 cube, then greys."""
    if index >= 232:
        return (8 + 10 * (index - 232),) * 3
    levels = (0, 95, 135, 175, 215, 255)
    red, rest = divmod(index - 16, 36)
    return levels[red], levels[rest // 6], levels[rest % 6]


def contrast(one, other):
    """The contrast of two colours as WCAG 2 defines it."""
    dark, light = sorted(map(lightness, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def matplotlibs(share):
    return tuple(255 * part for part in colormaps["cividis"](share)[:3])


def test_nine_samples_are_enough_for_cividis():
    for share in STEPS:
        assert cividis(share) == pytest.approx(matplotlibs(share), abs=19)
        assert lightness(cividis(share)) == pytest.approx(
            lightness(tuple(map(round, matplotlibs(share)))), abs=0.02
        )


def test_the_scale_only_grows_lighter():
    grown = [lightness(cividis(share)) for share in STEPS]
    assert grown == sorted(grown)
    few = [lightness(xterm(index)) for index in XTERM]
    assert few == sorted(set(few))


def test_what_is_beyond_the_scale_takes_the_colour_of_its_end():
    assert cividis(-0.5) == cividis(0.0)
    assert cividis(1.5) == cividis(1.0)
    assert paint("x", 1.5, "256") == paint("x", 1.0, "256")
    assert shade(1.5) == SHADES[-1]


def test_numbers_can_be_read_on_every_colour():
    for share in STEPS:
        assert contrast(cividis(share), contrast_colour(cividis(share))) >= 4.5
    for step, index in enumerate(XTERM):
        assert contrast(xterm(index), WHITE if step < XTERM_DARK else BLACK) >= 4.5


def test_lightness_is_that_of_the_standard():
    assert lightness(WHITE) == pytest.approx(1)
    assert lightness(BLACK) == 0
    assert lightness((255, 0, 0)) == pytest.approx(0.2126)


def test_paint_sets_paper_and_ink_and_sets_them_back():
    assert paint("hi", 0.0, "24-bit") == "\x1b[48;2;0;34;78;38;2;255;255;255mhi\x1b[0m"
    assert paint("hi", 1.0, "256") == "\x1b[48;5;227;38;5;16mhi\x1b[0m"
    assert paint("hi", 0.5, "plain") == "hi"


def test_shades_hold_more_ink_for_more_weight():
    assert [shade(share) for share in (0.0, 0.35, 1.0)] == [" ", "-", "@"]


@pytest.mark.parametrize(
    ("environment", "is_terminal", "wanted"),
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
def test_the_environment_says_how_many_colours(environment, is_terminal, wanted):
    assert depth(environment, is_terminal) == wanted


def test_two_halves_have_a_colour_each():
    assert paint_halves(1.0, 0.0, "24-bit") == "\x1b[38;2;254;232;56;48;2;0;34;78m▀\x1b[0m"
    assert paint_halves(1.0, 0.0, "256") == "\x1b[38;5;227;48;5;17m▀\x1b[0m"
    assert paint_halves(0.0, None, "256") == "\x1b[38;5;17m▀\x1b[0m"
