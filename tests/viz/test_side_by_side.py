from regard.viz.colour import paint
from regard.viz.side_by_side import shown, side_by_side
from regard.viz.terminal import render_heatmap


def test_the_second_text_starts_in_one_column():
    assert side_by_side("a\nlong\nb", "1\n2\n3", gap=2) == "a     1\nlong  2\nb     3"


def test_a_shorter_text_ends_without_trailing_blanks():
    assert side_by_side("a\nb\nc", "1", gap=1) == "a 1\nb\nc"
    assert side_by_side("a", "1\n2", gap=1) == "a 1\n  2"


def test_chinese_signs_take_two_columns_and_colours_none():
    text = f"猫\n{paint('ab', 0.5, '24-bit')}\nabc"
    assert [shown(line) for line in text.splitlines()] == [2, 2, 3]
    lines = side_by_side(text, "|\n|\n|", gap=1).splitlines()
    assert {shown(line) for line in lines} == {5}


def test_two_maps_of_different_height_keep_their_shape():
    tall = render_heatmap([[1.0]] * 4, ["猫", "a", "b", "c"], ["x"], colour="256", width=40)
    low = render_heatmap([[0.5, 0.5]], ["q"], ["x", "y"], colour="24-bit", width=40)
    lines = side_by_side(tall, low).splitlines()
    room = 4 + max(map(shown, tall.splitlines()))
    assert len(lines) == len(tall.splitlines())
    for line, left, right in zip(lines, tall.splitlines(), low.splitlines(), strict=False):
        assert line.startswith(left) and line.endswith(right)
        if right:
            assert shown(line) - shown(right) == room


def test_nothing_beside_nothing_is_nothing():
    assert side_by_side("", "") == ""
