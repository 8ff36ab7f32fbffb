from regard.cli.translate import format_lines
from regard.decoding import Translation


def test_format_lines_keeps_each_translation_on_one_line():
    one, two = (Translation(text, score=-0.5) for text in ("a\nb", "c\u2028d"))
    assert format_lines(one) == "a b"
    assert format_lines([one, two]) == "-0.5000\ta b\n-0.5000\tc d"
