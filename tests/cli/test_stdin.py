import os
from io import BytesIO, TextIOWrapper
from threading import Timer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.cli.translate import open_stdin, read_available_lines
from regard.errors import RegardError


def lines_of(data, read_bytes=1 << 16):
    return [line for block in read_available_lines(BytesIO(data), read_bytes) for line in block]


@pytest.mark.parametrize("is_terminal", [True, False])
@pytest.mark.usefixtures("unchecked")
def test_hint_is_printed_if_stdin_is_a_terminal(monkeypatch, capsys, is_terminal):
    stdin = TextIOWrapper(BytesIO(b"a cat\n"))
    monkeypatch.setattr(stdin, "isatty", lambda: is_terminal, raising=False)
    monkeypatch.setattr("sys.stdin", stdin)
    assert list(read_available_lines(open_stdin())) == [["a cat"]]
    out, err = capsys.readouterr()
    assert out == "" and ("one sentence per line" in err) == is_terminal


@given(st.lists(st.text(st.characters(exclude_characters="\n\r", codec="utf-8"))), st.booleans())
def test_lines_are_yielded_in_order_unchanged(lines, ended):
    data = "\n".join(lines).encode()
    expected = lines if lines[-1:] != [""] else lines[:-1]  # nothing after the last line feed
    assert lines_of(data + b"\n" * (ended and bool(lines))) == (lines if ended else expected)


@given(st.text(st.sampled_from("aé漢🎉\n\r "), max_size=40), st.integers(1, 7))
def test_lines_do_not_depend_on_read_size(text, block):
    data = text.encode()
    assert lines_of(data, block) == lines_of(data)


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\r", ["a"]),
        (b"a\rb\n", ["a\rb"]),
        (b"a\n\nb", ["a", "", "b"]),
        ("a\u2028b\x85c\x0bd\n".encode(), ["a\u2028b\x85c\x0bd"]),
    ],
)
def test_only_line_feeds_end_lines(data, lines):
    assert lines_of(data) == lines


def test_line_is_yielded_before_the_next_is_written():
    reader, writer = os.pipe()
    with open(reader, "rb") as file, open(writer, "wb", buffering=0) as pen:  # noqa: PTH123
        late = Timer(9, pen.close)  # or a reader that waits for more would never return
        late.start()
        blocks = read_available_lines(file)
        pen.write(b"one\n")
        assert next(blocks) == ["one"]
        pen.write(b"two\nthr")
        assert next(blocks) == ["two"]
        pen.write(b"ee\nfour\nfi")
        assert next(blocks) == ["three", "four"]
        late.cancel()
        pen.close()
        assert list(blocks) == [["fi"]]


def test_long_file_is_read_in_blocks(tmp_path):
    path = tmp_path / "long"
    path.write_text("a line\n" * 100)
    with path.open("rb") as file:
        sizes = [len(block) for block in read_available_lines(file, 64)]
    assert sum(sizes) == 100
    assert max(sizes) <= 10


@pytest.mark.parametrize("block", [1 << 16, 3])
def test_invalid_utf8_error_names_the_line(block):
    with pytest.raises(RegardError, match="stdin must be UTF-8, but line 3 is not"):
        lines_of(b"one\n\nt\xffo\nfour\n", block)


def test_lines_of_earlier_reads_are_yielded_before_the_error():
    blocks = read_available_lines(BytesIO(b"one\n\xff\xff\xff\n"), 4)
    assert next(blocks) == ["one"]
    with pytest.raises(RegardError, match="line 2"):
        next(blocks)


@pytest.mark.parametrize("block", [1 << 16, 1])
def test_byte_order_mark_is_removed_from_the_first_line(block):
    assert lines_of("\ufeffone\n\ufefftwo\n".encode(), block) == ["one", "\ufefftwo"]


@pytest.mark.parametrize("block", [1 << 16, 1])
def test_utf_16_is_named_by_its_byte_order_mark(block):
    with pytest.raises(RegardError, match="^stdin must be UTF-8, but it is UTF-16, .*`iconv"):
        lines_of("one\ntwo\n".encode("utf-16"), block)
