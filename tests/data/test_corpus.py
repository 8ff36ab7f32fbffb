import gzip
import os
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data import Corpus, Pair, check_corpus, find_words, read_pairs
from regard.data.corpus import read_lines
from regard.errors import RegardError


def write(path, data):
    """Write a file, gzipped if it ends in .gz."""
    data = data.encode() if isinstance(data, str) else data
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.fixture(params=["", ".gz"], ids=["plain", "gz"])
def suffix(request):
    return request.param


def pairs_of(path, data):
    return [pair[:2] for pair in read_pairs([write(path, data)])]


def test_tsv_has_source_and_target_separated_by_a_tab(tmp_path, suffix):
    path = tmp_path / f"pairs.tsv{suffix}"
    assert pairs_of(path, "a cat\tun chat\na dog\tun chien\n") == [
        ("a cat", "un chat"),
        ("a dog", "un chien"),
    ]


def test_parallel_files_are_read_line_by_line(tmp_path, suffix):
    one = write(tmp_path / f"one{suffix}", "a\nb\nc")
    two = write(tmp_path / f"two{suffix}", "x\ny\nz\n")
    assert list(read_pairs([one, two])) == [Pair("a", "x"), Pair("b", "y"), Pair("c", "z")]


@pytest.mark.parametrize(
    ("data", "pairs"),
    [
        ("a\tb\tCC-BY 2.0\tsomebody\n", [("a", "b")]),
        ("\ufeffa\tb\nc\td", [("a", "b"), ("c", "d")]),
        ("a\tb\r\nc\td\r\n", [("a", "b"), ("c", "d")]),
        ("a\u2028b\tc\x85d\x0be\n", [("a\u2028b", "c\x85d\x0be")]),
        ("a\rb\tc\n", [("a\rb", "c")]),
        ("  a \t b  \n", [("a", "b")]),
        ("a\tb\n\nc\td\n", [("a", "b"), ("", ""), ("c", "d")]),
        ("\tb\na\t\n", [("", "b"), ("a", "")]),
        ("", []),
    ],
    ids=[
        "more columns",
        "byte order mark",
        "carriage returns",
        "other line ends",
        "a carriage return within",
        "spaces around",
        "an empty line",
        "empty sides",
        "an empty file",
    ],
)
def test_lines_end_at_line_feeds_and_columns_at_tabs(tmp_path, data, pairs):
    assert pairs_of(tmp_path / "pairs.tsv", data) == pairs


def test_only_the_line_ending_is_stripped(tmp_path):
    path = write(tmp_path / "some", "\ufeff a \r\n\ufeffb\r\r\n\rc")
    assert list(read_lines(path)) == [" a ", "\ufeffb\r", "\rc"]


clean = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\t\0\ufeff")).map(str.strip)


@given(st.lists(st.tuples(clean, clean)))
def test_any_text_without_tabs_and_line_feeds_round_trips(tmp_path_factory, pairs):
    data = "".join(f"{source}\t{target}\n" for source, target in pairs)
    assert pairs_of(tmp_path_factory.mktemp("any") / "pairs.tsv", data) == pairs


def test_line_without_a_tab_is_refused_by_number(tmp_path):
    path = write(tmp_path / "pairs.tsv", "a\tb\n\nc d\n")
    with pytest.raises(RegardError, match=r"pairs.tsv must have a tab .*, but line 3 has none"):
        list(read_pairs([path]))


@pytest.mark.parametrize(
    ("one", "two", "words"),
    [
        ("a\nb\nc\nd\n", "x\ny\n", "two has 2 and .*one has 4$"),
        ("a\n", "x\ny\nz\n", "one has 1 and .*two has 3$"),
        ("", "x\n", "one has 0 and .*two has 1$"),
    ],
)
def test_parallel_files_of_unequal_length_are_refused_with_both_counts(tmp_path, one, two, words):
    paths = [write(tmp_path / "one", one), write(tmp_path / "two", two)]
    with pytest.raises(
        RegardError, match=f"parallel files must have equally many lines, but .*{words}"
    ):
        list(read_pairs(paths))


@pytest.mark.parametrize("count", [0, 3])
def test_other_than_one_or_two_files_is_refused(tmp_path, count):
    with pytest.raises(RegardError, match=f"one TSV file or two parallel files, but {count} files"):
        read_pairs([tmp_path / "file"] * count)


def test_missing_file_is_reported_in_one_line(tmp_path, suffix):
    path = tmp_path / f"missing{suffix}"
    words = f"^cannot read .*missing{suffix}: No such file or directory$"
    with pytest.raises(RegardError, match=words):
        list(read_pairs([path]))


def test_folder_cannot_be_read_as_a_file(tmp_path):
    with pytest.raises(RegardError, match="^cannot read .*: Is a directory$"):
        list(read_lines(tmp_path))


def test_binary_file_is_refused(tmp_path, suffix):
    path = write(tmp_path / f"some{suffix}", b"a\tb\n\x89PNG\0\0\n")
    with pytest.raises(
        RegardError, match=f"some{suffix} must be a text file, but line 2 has a zero byte"
    ):
        list(read_pairs([path]))


def test_invalid_utf_8_is_refused_with_line_and_byte(tmp_path, suffix):
    path = write(tmp_path / f"some{suffix}", b"a\tb\n" * 2 + "é\tb\n".encode("latin-1"))
    words = f"some{suffix} must be UTF-8, but line 3 is not, at byte 0; `iconv"
    with pytest.raises(RegardError, match=words):
        list(read_pairs([path]))


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_other_encoding_is_named_by_its_byte_order_mark(tmp_path, suffix, encoding):
    path = write(tmp_path / f"some{suffix}", "\ufeffa\tb\nc\td\n".encode(encoding))
    name = encoding[:6]
    words = f"some{suffix} must be UTF-8, but it is {name.upper()}, .*`iconv -f {name} -t utf-8`"
    with pytest.raises(RegardError, match=words):
        list(read_pairs([path]))


def test_further_columns_are_noted_and_ignored(tmp_path, suffix):
    plain = write(tmp_path / f"two{suffix}", b"a\tb\nc\td\n")
    wide = write(tmp_path / f"three{suffix}", b"a\tb\nc\td\tCC-BY\n")
    assert Corpus.from_files([plain]).notes == ()
    assert Corpus.from_files([plain, wide]).notes == ()  # parallel files have no columns
    (note,) = Corpus.from_files([wide]).notes
    assert note == f"{wide} has 3 columns; those after the second are ignored"
    assert list(read_pairs([wide])) == list(read_pairs([plain]))


@pytest.mark.parametrize("damage", ["cut", "flipped", "not packed"])
def test_damaged_gzip_file_is_refused(tmp_path, damage):
    data = gzip.compress(b"".join(b"line %d\tzeile %d\n" % (n, n) for n in range(500)))
    if damage == "cut":
        data = data[: len(data) // 2]
    elif damage == "flipped":
        data = data[:-6] + bytes([data[-6] ^ 1]) + data[-5:]  # of its own checksum
    else:
        data = b"a\tb\n"
    (tmp_path / "some.gz").write_bytes(data)
    with pytest.raises(RegardError, match=r"some.gz must be a .gz file, but it is damaged: "):
        list(read_pairs([tmp_path / "some.gz"]))


def test_alignments_link_the_characters_of_words(tmp_path):
    pairs = write(tmp_path / "pairs", "the  red cat\tle chat rouge\na a\tun un\nx\ty\n")
    links = write(tmp_path / "links", "0-0 1-2 2-1\n1-1\n\n")
    one, two, three = read_pairs([pairs], links)
    parts = [(one.source[slice(*left)], one.target[slice(*right)]) for left, right in one.links]
    assert parts == [("the", "le"), ("red", "rouge"), ("cat", "chat")]
    assert two.links == (((2, 3), (3, 5)),), "the second of two equal words"
    assert three.links == ()


@pytest.mark.parametrize("space", ["\u00a0", "\u3000", "\u2028", "\u202f"])
def test_alignments_count_words_between_ascii_spaces(tmp_path, space):
    pairs = write(tmp_path / "pairs", f"is it true ? yes\tEst-ce vrai{space}? oui\n")
    (pair,) = read_pairs([pairs], write(tmp_path / "links", "4-2\n"))
    ((left, right),) = pair.links
    assert (pair.source[slice(*left)], pair.target[slice(*right)]) == ("yes", "oui")


def test_file_parallel_to_itself_is_refused(tmp_path):
    path = write(tmp_path / "pairs.tsv", "a\tb\n")
    (tmp_path / "link.tsv").symlink_to(path)
    for other in (path, tmp_path / "link.tsv"):
        with pytest.raises(
            RegardError, match="parallel files must be two files, but both are .*tsv"
        ):
            read_pairs([path, other])


def test_file_name_that_is_too_long_is_reported_in_one_line():
    with pytest.raises(RegardError, match="cannot read aaa.*: File name too long"):
        Corpus.from_files([Path("a" * 300)])


@pytest.mark.skipif(sys.platform != "linux", reason="names of files must be UTF-8 there")
def test_file_name_that_is_not_utf_8_is_made_printable(tmp_path):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.tsv"))
    path.write_text("a\tb\n")
    (name,) = Corpus.from_files([path]).names
    assert name.endswith("caf\ufffd.tsv")
    assert name.encode()


@pytest.mark.parametrize("line", ["0-2", "2-0", "0:0", "0-", "-1-0", "a-b", "0-0-0", "0", "0-0 1"])
def test_invalid_links_are_refused_with_their_line(tmp_path, line):
    pairs = write(tmp_path / "pairs", "a\tb\na b\tx y\n")
    links = write(tmp_path / "links", f"0-0\n{line}\n")
    words = f"links, line 2: links must be .* from 0-0 to 1-1, but the line is '{line}'"
    with pytest.raises(RegardError, match=words):
        list(read_pairs([pairs], links))


@pytest.mark.parametrize(
    ("links", "words"),
    [
        ("0-0\n", "links ends before line 2 of .*pairs$"),
        ("0-0\n0-0\n0-0\n", "pairs ends before line 3 of .*links$"),
    ],
)
def test_alignments_must_have_a_line_per_pair(tmp_path, links, words):
    pairs = write(tmp_path / "pairs", "a\tb\nc\td\n")
    with pytest.raises(RegardError, match=f"links must have a line per pair, but .*{words}"):
        list(read_pairs([pairs], write(tmp_path / "links", links)))


words = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1)


@given(st.lists(words), st.sampled_from([" ", "  ", "\t"]))
def test_find_words_returns_the_span_of_each_word_in_order(expected, separator):
    text = separator.join(expected)
    spans = find_words(text, expected)
    assert [text[start:end] for start, end in spans] == expected
    assert all(one[1] <= other[0] for one, other in pairwise(spans))


def test_corpus_of_files_can_be_read_repeatedly(tmp_path):
    pairs = write(tmp_path / "pairs", "a\tb\nc\td\n")
    links = write(tmp_path / "links", "0-0\n0-0\n")
    corpus = Corpus.from_files([pairs], links)
    assert list(corpus.read()) == list(corpus.read())
    assert len(list(corpus.read())) == 2
    assert corpus.names == (str(pairs), str(links))


def test_corpus_of_pairs_in_memory_can_be_read_repeatedly():
    pairs = [Pair("a", "b"), Pair("c", "d", (((0, 1), (0, 1)),))]
    corpus = Corpus.from_pairs("some", pairs)
    assert list(corpus.read()) == list(corpus.read()) == pairs
    assert corpus.names == ("some",)
    assert corpus.dataset is None


def test_pipe_is_refused_because_it_cannot_be_read_twice(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(RegardError, match="pipe must be a file, because it is read several times"):
        Corpus.from_files([pipe])


def test_paths_may_be_strings_and_one_needs_no_list(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("a\tx\nb\ty\n", encoding="utf-8")
    expected = list(read_pairs([path]))
    for paths in (path, str(path), [str(path)]):
        assert list(read_pairs(paths)) == expected
        assert list(Corpus.from_files(paths).read()) == expected
        assert list(check_corpus(paths)) == list(check_corpus([path]))
        assert list(check_corpus(paths, paths)) == list(check_corpus([path], [path]))
