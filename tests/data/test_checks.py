from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard._support.text import count
from regard.config import RunConfig
from regard.data import Corpus, Pair, Tokenizer, check_corpus, input_warnings
from regard.data.checks import TROUBLESOME_CHARACTERS
from regard.errors import RegardError
from regard.training.preparation import HoldoutSplit

TOO_FEW = (
    "but training refuses fewer than 10 pairs without validation pairs of their own: "
    "`regard train --valid` names them"
)


def report(tmp_path, text, test=None):
    path = tmp_path / "pairs.tsv"
    path.write_bytes(text.encode())
    others = None
    if test is not None:
        others = [tmp_path / "test.tsv"]
        others[0].write_bytes(test.encode())
    return list(check_corpus([path], others))


def findings(tmp_path, text, test=None):
    """Return only the lines that count findings."""
    return [line for line in report(tmp_path, text, test) if " × " in line]


def test_clean_corpus_has_no_findings(tmp_path):
    lines = report(tmp_path, "the cat\tle chat\na red dog\tun chien rouge\n")
    assert lines == [
        f"2 pairs in {tmp_path / 'pairs.tsv'}",
        "source words: median 2.5, maximum 3",
        "target words: median 2.5, maximum 3",
        "target words per source word: median 1.00",
        "source scripts: latin 100.0%",
        "target scripts: latin 100.0%",
        "training would drop 0 pairs and use 2",
        TOO_FEW,
    ]


@pytest.mark.parametrize("pairs", [9, 10])
def test_corpus_that_training_refuses_without_validation_pairs_is_reported(tmp_path, pairs):
    lines = report(tmp_path, "".join(f"word {n}\tWort {n}\n" for n in range(pairs)))
    corpus = Corpus.from_pairs("pairs", [Pair(f"word {n}", f"Wort {n}") for n in range(pairs)])
    try:
        HoldoutSplit(corpus, None, pairs, RunConfig())
    except RegardError:
        assert lines[-1] == TOO_FEW
    else:
        assert lines[-1] == f"training would drop 0 pairs and use {pairs}"


def test_every_character_that_python_splits_lines_at_is_troublesome():
    letters = map(chr, range(0x3000))
    ends = {letter for letter in letters if len(f"a{letter}b".splitlines()) > 1}
    # line feeds do end a line; separators of files, groups and records are in no text
    assert ends - set("\n\x1c\x1d\x1e") <= set(TROUBLESOME_CHARACTERS)


@pytest.mark.parametrize("character", TROUBLESOME_CHARACTERS, ids=lambda c: f"U+{ord(c):04X}")
@pytest.mark.parametrize("side", [0, 1])
def test_troublesome_character_is_reported_with_its_line(tmp_path, character, side):
    pair = ["one word", "ein Wort"]
    pair[side] = pair[side].replace(" ", f" x{character}y ")
    text = "two words\tzwei Worte\n" + "\t".join(pair) + "\n"
    assert findings(tmp_path, text) == [f"1 × {TROUBLESOME_CHARACTERS[character]} (line 2)"]


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("\x1b[31mword", "a control character, as in terminal output"),
        ("word\x9f", "a control character, as in terminal output"),
        ("\u202eword", "a control of text direction, which is not displayed"),
        ("\u2066word\u2069", "a control of text direction, which is not displayed"),
    ],
)
@pytest.mark.parametrize("side", [0, 1])
def test_characters_that_are_not_displayed_are_reported(tmp_path, text, finding, side):
    pair = ["one", "eins"]
    pair[side] = text
    assert findings(tmp_path, "two\tzwei\n" + "\t".join(pair) + "\n") == [f"1 × {finding} (line 2)"]


def test_characters_that_shape_words_and_emoji_are_not_reported(tmp_path):
    assert findings(tmp_path, "می\u200cروم 👩\u200d👧\t\u200eword\u200f soft\u00adhyphen\n") == []


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        ("\tleer", "empty source: dropped in training"),
        ("empty\t", "empty target: dropped in training"),
        ("word " * 129 + "\t" + "Wort " * 128, "source longer than 128 words: dropped in training"),
        ("word " * 128 + "\t" + "Wort " * 129, "target longer than 128 words: dropped in training"),
        ("word\t" + "Wort " * 15, "one side more than 9 times the other: dropped in training"),
        ("a b\tx y", "duplicate pair"),
        ("same\tsame", "source and target are equal"),
        ("e\u0301te\tsummer", "accents as separate characters (not NFC)"),
    ],
)
def test_oddity_is_reported_with_its_line(tmp_path, line, finding):
    lines = report(tmp_path, f"a b\tx y\nc d\tz w\n{line}\n")
    assert f"1 × {finding} (line 3)" in lines
    dropped = int(finding.endswith("dropped in training"))
    assert lines[-2] == f"training would drop {count(dropped, 'pair')} and use {3 - dropped}"


def test_quotation_marks_of_an_export_are_reported(tmp_path):
    quoted = '"two words"\t"zwei Worte"\n'
    text = f'a "word"\tein "Wort"\n{quoted}"one"\teins\n"\t"\n'
    finding = "quotation marks around source and target, as in an exported table: they are learned"
    assert f"1 × {finding} (line 2)" in findings(tmp_path, text)


def test_first_of_duplicate_pairs_is_not_counted(tmp_path):
    assert findings(tmp_path, "a\tb\n" * 3) == ["2 × duplicate pair (line 2, 3)"]
    assert findings(tmp_path, "a\tb\na\tc\nd\tb\n") == []


def test_overlap_with_the_test_set_is_reported(tmp_path):
    lines = findings(tmp_path, "a\tb\nc\td\n", test="c\tsomething else\n")
    assert lines == ["1 × source also in the test pairs (line 2)"]


def test_at_most_three_lines_are_listed(tmp_path):
    assert findings(tmp_path, "a\tb\n" * 4) == ["3 × duplicate pair (line 2, 3, 4)"]
    assert findings(tmp_path, "a\tb\n" * 5) == ["4 × duplicate pair (line 2, 3, 4, …)"]


def test_most_frequent_finding_comes_first(tmp_path):
    lines = findings(tmp_path, "same\tsame\n\tx\n\ty\n\tz\n")
    assert [line.split(" × ")[0] for line in lines] == ["3", "1"]


def test_pair_empty_on_both_sides_is_dropped_once(tmp_path):
    assert report(tmp_path, "\t\na\tb\n")[-2].endswith("drop 1 pair and use 1")


def test_scripts_are_reported_per_side(tmp_path):
    lines = report(tmp_path, "tea мир\t我喜欢茶\n123\t!?\n")
    assert "source scripts: latin 50.0%, cyrillic 50.0%" in lines
    assert "target scripts: cjk 100.0%" in lines
    assert "source scripts: none" in report(tmp_path, "1\t2\n")


def test_chinese_words_are_counted_by_characters(tmp_path):
    lines = report(tmp_path, "I like tea a lot\t我很喜欢茶\n")
    assert "target words: median 5, maximum 5" in lines


def test_empty_file_has_no_pairs(tmp_path):
    assert report(tmp_path, "") == [
        f"0 pairs in {tmp_path / 'pairs.tsv'}",
        "training would drop 0 pairs and use 0",
        TOO_FEW,
    ]


def test_parallel_files_are_named_in_the_report(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("a\nb\n")
    two.write_text("x\n")
    with pytest.raises(RegardError, match="equally many lines, but .*two has 1 and .*one has 2"):
        list(check_corpus([one, two]))
    two.write_text("x\ny\n")
    assert next(check_corpus([one, two])) == f"2 pairs in {one} and {two}"


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=12))
def test_reported_median_equals_statistics_median(lengths):
    with TemporaryDirectory() as folder:
        text = "".join(f"{'a ' * a}\t{'b ' * b}\n" for a, b in lengths)
        lines = report(Path(folder), text)
    sources, targets = zip(*lengths, strict=True)
    assert lines[1] == f"source words: median {median(sources):g}, maximum {max(sources)}"
    assert lines[2] == f"target words: median {median(targets):g}, maximum {max(targets)}"
    ratio = median(b / a for a, b in lengths)
    assert lines[3] == f"target words per source word: median {ratio:.2f}"


def test_third_column_is_mentioned(tmp_path):
    lines = report(tmp_path, "a\tb\tCC-BY\n")
    assert lines[0].startswith("1 pair in ")
    assert lines[1].endswith("has 3 columns; those after the second are ignored")


def test_words_that_the_training_data_lack_are_named_once_in_order():
    tokenizer = Tokenizer("words", [*" abcdefghijklmnopqrstuvwxyz'’éà"])
    words = {"the", "cat", "marie", "s", "a"}
    known = ["The cat", "Marie's cat", "Marie’s cat, the cat?"]
    assert input_warnings(tokenizer, known, 128, words) == {}
    unseen = ["the dog and the dog", "don't", "un été à a"]
    assert input_warnings(tokenizer, unseen, 128, words) == {
        "words": "the model was trained with 5 words, which do not include "
        "'dog', 'and', \"don't\", 'un', 'été'"
    }
    assert input_warnings(tokenizer, unseen, 128) == {}
