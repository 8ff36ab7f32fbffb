from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data import check_corpus
from regard.data.checks import TRAPS
from regard.errors import RegardError


def told(tmp_path, text, test=None):
    path = tmp_path / "pairs.tsv"
    path.write_bytes(text.encode())
    others = None
    if test is not None:
        others = [tmp_path / "test.tsv"]
        others[0].write_bytes(test.encode())
    return list(check_corpus([path], others))


def found(tmp_path, text, test=None):
    """Give the findings alone: those that count lines."""
    return [line for line in told(tmp_path, text, test) if " × " in line]


def test_a_clean_corpus_has_no_findings(tmp_path):
    lines = told(tmp_path, "the cat\tle chat\na red dog\tun chien rouge\n")
    assert lines == [
        f"2 pairs in {tmp_path / 'pairs.tsv'}",
        "source: 2.5 words in the middle, 3 at most",
        "target: 2.5 words in the middle, 3 at most",
        "target words to a source word: 1.00 in the middle",
        "scripts of the source: latin 100.0%",
        "scripts of the target: latin 100.0%",
        "a training would leave out 0 pairs and learn from 2",
    ]


def test_all_that_some_programs_take_for_the_end_of_a_line_are_traps():
    letters = map(chr, range(0x3000))
    ends = {letter for letter in letters if len(f"a{letter}b".splitlines()) > 1}
    # line feeds do end a line; separators of files, groups and records are in no text
    assert ends - set("\n\x1c\x1d\x1e") <= set(TRAPS)


@pytest.mark.parametrize("sign", TRAPS, ids=lambda sign: f"U+{ord(sign):04X}")
@pytest.mark.parametrize("side", [0, 1])
def test_each_trap_is_found_and_named_with_its_line(tmp_path, sign, side):
    pair = ["one word", "ein Wort"]
    pair[side] = pair[side].replace(" ", f" x{sign}y ")
    text = "two words\tzwei Worte\n" + "\t".join(pair) + "\n"
    assert found(tmp_path, text) == [f"1 × {TRAPS[sign]} (line 2)"]


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        ("\tleer", "empty source: left out"),
        ("empty\t", "empty target: left out"),
        ("word " * 129 + "\t" + "Wort " * 128, "source longer than 128 words: left out"),
        ("word " * 128 + "\t" + "Wort " * 129, "target longer than 128 words: left out"),
        ("word\t" + "Wort " * 15, "one side more than 9 times the other: left out"),
        ("a b\tx y", "the same pair again"),
        ("same\tsame", "source and target are the same"),
        ("e\u0301te\tsummer", "letters and accents apart (not NFC)"),
    ],
)
def test_each_oddity_is_found_with_its_line(tmp_path, line, finding):
    lines = told(tmp_path, f"a b\tx y\nc d\tz w\n{line}\n")
    assert f"1 × {finding} (line 3)" in lines
    left = int(finding.endswith("left out"))
    assert lines[-1] == f"a training would leave out {left} pairs and learn from {3 - left}"


def test_the_first_of_pairs_that_are_alike_is_no_finding(tmp_path):
    assert found(tmp_path, "a\tb\n" * 3) == ["2 × the same pair again (line 2, 3)"]
    assert found(tmp_path, "a\tb\na\tc\nd\tb\n") == []


def test_sources_that_are_also_in_the_test_are_found(tmp_path):
    lines = found(tmp_path, "a\tb\nc\td\n", test="c\tsomething else\n")
    assert lines == ["1 × a source that is also in the test pairs (line 2)"]


def test_three_lines_are_named_and_more_are_counted(tmp_path):
    assert found(tmp_path, "a\tb\n" * 4) == ["3 × the same pair again (line 2, 3, 4)"]
    assert found(tmp_path, "a\tb\n" * 5) == ["4 × the same pair again (line 2, 3, 4, …)"]


def test_the_commonest_finding_comes_first(tmp_path):
    lines = found(tmp_path, "same\tsame\n\tx\n\ty\n\tz\n")
    assert [line.split(" × ")[0] for line in lines] == ["3", "1"]


def test_a_pair_is_left_out_once(tmp_path):
    assert told(tmp_path, "\t\na\tb\n")[-1].endswith("leave out 1 pairs and learn from 1")


def test_scripts_are_told_side_by_side(tmp_path):
    lines = told(tmp_path, "tea мир\t我喜欢茶\n123\t!?\n")
    assert "scripts of the source: latin 50.0%, cyrillic 50.0%" in lines
    assert "scripts of the target: cjk 100.0%" in lines
    assert "scripts of the source: none" in told(tmp_path, "1\t2\n")


def test_words_without_spaces_are_counted_by_their_signs(tmp_path):
    lines = told(tmp_path, "I like tea a lot\t我很喜欢茶\n")
    assert "target: 5 words in the middle, 5 at most" in lines


def test_an_empty_file_has_no_pairs(tmp_path):
    assert told(tmp_path, "") == [
        f"0 pairs in {tmp_path / 'pairs.tsv'}",
        "a training would leave out 0 pairs and learn from 0",
    ]


def test_two_files_are_named_and_their_lines_counted(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("a\nb\n")
    two.write_text("x\n")
    with pytest.raises(RegardError, match="as many lines, but .*two has 1 and .*one has 2"):
        list(check_corpus([one, two]))
    two.write_text("x\ny\n")
    assert next(check_corpus([one, two])) == f"2 pairs in {one} and {two}"


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=12))
def test_the_middle_is_the_median(lengths):
    with TemporaryDirectory() as folder:
        text = "".join(f"{'a ' * a}\t{'b ' * b}\n" for a, b in lengths)
        lines = told(Path(folder), text)
    sources, targets = zip(*lengths, strict=True)
    assert lines[1].startswith(
        f"source: {median(sources):g} words in the middle, {max(sources)} at"
    )
    assert lines[2].startswith(
        f"target: {median(targets):g} words in the middle, {max(targets)} at"
    )
    ratio = median(b / a for a, b in lengths)
    assert lines[3] == f"target words to a source word: {ratio:.2f} in the middle"
