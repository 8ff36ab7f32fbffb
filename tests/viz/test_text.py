import numpy as np

from regard.trace import build_translation_trace
from regard.viz.side_by_side import shown
from regard.viz.text import render_head, render_links


def long(queries, keys):
    weights = np.random.default_rng(0).dirichlet(np.full(keys, 0.1), size=(2, queries))
    source = [f"s{n}" for n in range(keys)]
    target = [f"t{n}" for n in range(queries)]
    return build_translation_trace(source, target, cross=[weights], model="long")


def test_a_small_trace_is_a_map_with_its_words(trace):
    lines = render_head(trace, "cross", 0, 0, colour="plain", width=80).splitlines()
    assert lines[0] == "a hand-made translator · cross, layer 0, head 0"
    assert lines[2].split() == ["The", "cat", "sit", "s", "</s>"]
    assert [line.split()[0] for line in lines[3:7]] == ["<s>", "猫", "坐", "着"]


def test_a_large_trace_is_half_blocks_and_its_strongest_links():
    text = render_head(long(50, 60), colour="24-bit", width=80)
    assert text.count("▀") == 25 * 60
    assert text.splitlines()[-12:] == render_links(long(50, 60)).splitlines()


def test_a_wide_trace_fits_into_a_narrow_terminal():
    text = render_head(long(5, 60), colour="plain", width=50)
    map_part = text.split("\n\n")[1]
    assert max(map(shown, map_part.splitlines())) <= 50


def test_links_are_told_strongest_first(trace):
    told = render_links(trace, "decoder", 0, 0, count=3).splitlines()
    assert told == [
        "<s>  looks at <s>  (1.00; 0 to 0)",
        "猫   looks at 猫  (0.90; 1 to 1)",
        "坐   looks at 坐  (0.82; 2 to 2)",
    ]


def test_links_of_nothing_are_not_told(trace):
    told = render_links(trace, "decoder", 0, 0, count=100).splitlines()
    assert len(told) == 10  # the lower half: nobody looks ahead


def test_a_word_of_a_link_cannot_steer_the_terminal():
    trace = build_translation_trace(["\x1b[2J"], ["\x07"], cross=[np.ones((1, 1, 1))])
    assert not set(render_links(trace)) & set("\x1b\x07")
