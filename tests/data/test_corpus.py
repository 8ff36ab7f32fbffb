import gzip
import os
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data import Corpus, Pair, find_words, read_pairs
from regard.data.corpus import fingerprint_files, read_lines
from regard.errors import RegardError


def file(path, data):
    """Write a file, packed if its name says so."""
    data = data.encode() if isinstance(data, str) else data
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.fixture(params=["", ".gz"], ids=["plain", "gz"])
def ending(request):
    return request.param


def pairs_of(path, data):
    return [pair[:2] for pair in read_pairs([file(path, data)])]


def test_a_tsv_is_source_tab_target(tmp_path, ending):
    path = tmp_path / f"pairs.tsv{ending}"
    assert pairs_of(path, "a cat\tun chat\na dog\tun chien\n") == [
        ("a cat", "un chat"),
        ("a dog", "un chien"),
    ]


def test_two_files_are_read_side_by_side(tmp_path, ending):
    one = file(tmp_path / f"one{ending}", "a\nb\nc")
    two = file(tmp_path / f"two{ending}", "x\ny\nz\n")
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
def test_lines_are_parted_at_line_feeds_and_columns_at_tabs(tmp_path, data, pairs):
    assert pairs_of(tmp_path / "pairs.tsv", data) == pairs


def test_of_a_line_its_end_alone_is_taken(tmp_path):
    path = file(tmp_path / "some", "\ufeff a \r\n\ufeffb\r\r\n\rc")
    assert list(read_lines(path)) == [" a ", "\ufeffb\r", "\rc"]


clean = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\t\0\ufeff")).map(str.strip)


@given(st.lists(st.tuples(clean, clean)))
def test_any_text_without_tabs_and_line_feeds_comes_back(tmp_path_factory, pairs):
    data = "".join(f"{source}\t{target}\n" for source, target in pairs)
    assert pairs_of(tmp_path_factory.mktemp("any") / "pairs.tsv", data) == pairs


def test_a_line_without_a_tab_is_named(tmp_path):
    path = file(tmp_path / "pairs.tsv", "a\tb\n\nc d\n")
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
def test_files_of_unequal_length_are_refused_with_both_counts(tmp_path, one, two, words):
    paths = [file(tmp_path / "one", one), file(tmp_path / "two", two)]
    with pytest.raises(RegardError, match=f"parallel files must have as many lines, but .*{words}"):
        list(read_pairs(paths))


@pytest.mark.parametrize("count", [0, 3])
def test_pairs_are_in_one_file_or_in_two(tmp_path, count):
    with pytest.raises(RegardError, match=f"one TSV file or two parallel files, not {count} files"):
        read_pairs([tmp_path / "file"] * count)


def test_a_missing_file_is_one_sentence(tmp_path, ending):
    path = tmp_path / f"missing{ending}"
    words = f"^cannot read .*missing{ending}: No such file or directory$"
    with pytest.raises(RegardError, match=words):
        list(read_pairs([path]))
    with pytest.raises(RegardError, match=words):
        fingerprint_files([path])


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(RegardError, match="^cannot read .*: Is a directory$"):
        list(read_lines(tmp_path))


def test_a_binary_file_is_told_as_such(tmp_path, ending):
    path = file(tmp_path / f"some{ending}", b"a\tb\n\x89PNG\0\0\n")
    with pytest.raises(RegardError, match=f"some{ending} must be text, but line 2 has a zero byte"):
        list(read_pairs([path]))


def test_bad_utf_8_names_file_line_and_byte(tmp_path, ending):
    path = file(tmp_path / f"some{ending}", b"a\tb\n" * 2 + "é\tb\n".encode("latin-1"))
    words = f"some{ending} must be UTF-8, but line 3 is not, at its byte 0; iconv"
    with pytest.raises(RegardError, match=words):
        list(read_pairs([path]))


@pytest.mark.parametrize("damage", ["cut", "flipped", "not packed"])
def test_a_damaged_gz_is_told_as_such(tmp_path, damage):
    data = gzip.compress(b"".join(b"line %d\tzeile %d\n" % (n, n) for n in range(500)))
    if damage == "cut":
        data = data[: len(data) // 2]
    elif damage == "flipped":
        data = data[:-6] + bytes([data[-6] ^ 1]) + data[-5:]  # of its own checksum
    else:
        data = b"a\tb\n"
    (tmp_path / "some.gz").write_bytes(data)
    with pytest.raises(RegardError, match=r"some.gz must be a whole .gz file, but it is damaged: "):
        list(read_pairs([tmp_path / "some.gz"]))


def test_alignments_link_words_by_their_letters(tmp_path):
    pairs = file(tmp_path / "pairs", "the  red cat\tle chat rouge\na a\tun un\nx\ty\n")
    links = file(tmp_path / "links", "0-0 1-2 2-1\n1-1\n\n")
    one, two, three = read_pairs([pairs], links)
    parts = [(one.source[slice(*left)], one.target[slice(*right)]) for left, right in one.links]
    assert parts == [("the", "le"), ("red", "rouge"), ("cat", "chat")]
    assert two.links == (((2, 3), (3, 5)),), "the second of two words that are alike"
    assert three.links == ()


@pytest.mark.parametrize("space", ["\u00a0", "\u3000", "\u2028", "\u202f"])
def test_alignments_count_between_plain_spaces_as_aligners_do(tmp_path, space):
    pairs = file(tmp_path / "pairs", f"is it true ? yes\tEst-ce vrai{space}? oui\n")
    (pair,) = read_pairs([pairs], file(tmp_path / "links", "4-2\n"))
    ((left, right),) = pair.links
    assert (pair.source[slice(*left)], pair.target[slice(*right)]) == ("yes", "oui")


def test_a_file_is_not_parallel_to_itself(tmp_path):
    path = file(tmp_path / "pairs.tsv", "a\tb\n")
    (tmp_path / "link.tsv").symlink_to(path)
    for other in (path, tmp_path / "link.tsv"):
        with pytest.raises(RegardError, match="parallel files must be two, but both are .*tsv"):
            read_pairs([path, other])


def test_a_name_that_is_too_long_is_one_sentence():
    with pytest.raises(RegardError, match="cannot read aaa.*: File name too long"):
        Corpus.from_files([Path("a" * 300)])


@pytest.mark.skipif(sys.platform != "linux", reason="names of files must be UTF-8 there")
def test_a_name_that_is_not_utf_8_can_be_told(tmp_path):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.tsv"))
    path.write_text("a\tb\n")
    (name,) = Corpus.from_files([path]).names
    assert name.endswith("caf\ufffd.tsv")
    assert name.encode()


@pytest.mark.parametrize("line", ["0-2", "2-0", "0:0", "0-", "-1-0", "a-b", "0-0-0", "0", "0-0 1"])
def test_links_to_no_word_are_refused_with_their_line(tmp_path, line):
    pairs = file(tmp_path / "pairs", "a\tb\na b\tx y\n")
    links = file(tmp_path / "links", f"0-0\n{line}\n")
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
def test_alignments_have_a_line_for_each_pair(tmp_path, links, words):
    pairs = file(tmp_path / "pairs", "a\tb\nc\td\n")
    with pytest.raises(RegardError, match=f"links must have a line for each pair, but .*{words}"):
        list(read_pairs([pairs], file(tmp_path / "links", links)))


words = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1)


@given(st.lists(words), st.sampled_from([" ", "  ", "\t"]))
def test_spans_find_each_word_where_it_stands(some, between):
    text = between.join(some)
    found = find_words(text, some)
    assert [text[start:end] for start, end in found] == some
    assert all(one[1] <= other[0] for one, other in pairwise(found))


def test_a_fingerprint_tells_content_and_not_names(tmp_path):
    one, same = file(tmp_path / "one", "a\n"), file(tmp_path / "same", "a\n")
    other = file(tmp_path / "other", "b\n")
    assert fingerprint_files([one]) == fingerprint_files([same])
    assert fingerprint_files([one]) != fingerprint_files([other])
    assert fingerprint_files([one, other]) != fingerprint_files([other, one])


@pytest.mark.parametrize(("left", "right"), [("a|", "b"), ("a", "|b"), ("", "a||b"), ("a||b", "")])
def test_a_fingerprint_tells_where_one_file_ends(tmp_path, left, right):
    paths = [file(tmp_path / "one", left), file(tmp_path / "two", right)]
    others = [file(tmp_path / "three", "a|"), file(tmp_path / "four", "|b")]
    assert fingerprint_files(paths) != fingerprint_files(others)
    joined = file(tmp_path / "joined", f"{left}|{right}")
    assert fingerprint_files(paths) != fingerprint_files([joined])
    if (left, right) != ("a|", "b"):
        assert fingerprint_files(paths) != fingerprint_files(
            [file(tmp_path / "five", "a|"), file(tmp_path / "six", "b")]
        )


def test_a_corpus_can_be_read_again_and_again(tmp_path):
    pairs = file(tmp_path / "pairs", "a\tb\nc\td\n")
    links = file(tmp_path / "links", "0-0\n0-0\n")
    corpus = Corpus.from_files([pairs], links)
    assert list(corpus.read()) == list(corpus.read())
    assert len(list(corpus.read())) == 2
    assert corpus.names == (str(pairs), str(links))
    assert corpus.fingerprint != Corpus.from_files([pairs]).fingerprint


def test_pairs_in_memory_are_a_corpus_too():
    pairs = [Pair("a", "b"), Pair("c", "d", (((0, 1), (0, 1)),))]
    corpus = Corpus.from_pairs("some", pairs)
    assert list(corpus.read()) == list(corpus.read()) == pairs
    assert corpus.names == ("some",)
    unlinked = [pair._replace(links=()) for pair in pairs]
    other = [Corpus.from_pairs("some", some).fingerprint for some in (pairs[::-1], unlinked, [])]
    assert len({corpus.fingerprint, *other}) == 4
    assert Corpus.from_pairs("other name", pairs).fingerprint == corpus.fingerprint


def test_a_pipe_cannot_be_read_more_than_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(RegardError, match="pipe must be a file, which can be read more than once"):
        Corpus.from_files([pipe])
