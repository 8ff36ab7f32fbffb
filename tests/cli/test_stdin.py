import os
from io import BytesIO
from threading import Timer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.cli import stdin as stream
from regard.errors import RegardError


def lines_of(data):
    return [line for some in stream.chunks(BytesIO(data)) for line in some]


@given(st.lists(st.text(st.characters(exclude_characters="\n\r", codec="utf-8"))), st.booleans())
def test_lines_come_in_order_as_they_were(lines, ended):
    data = "\n".join(lines).encode()
    wanted = lines if lines[-1:] != [""] else lines[:-1]  # nothing after the last line feed
    assert lines_of(data + b"\n" * (ended and bool(lines))) == (lines if ended else wanted)


@given(st.text(st.sampled_from("aé漢🎉\n\r "), max_size=40), st.integers(1, 7))
def test_the_size_of_a_read_changes_nothing(text, block):
    data = text.encode()
    whole = lines_of(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "BLOCK", block)
        assert lines_of(data) == whole


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
def test_lines_end_at_line_feeds_alone(data, lines):
    assert lines_of(data) == lines


def test_a_line_is_given_before_the_next_is_written():
    reader, writer = os.pipe()
    with open(reader, "rb") as file, open(writer, "wb", buffering=0) as pen:  # noqa: PTH123
        late = Timer(9, pen.close)  # else whoever waits for more would wait for ever
        late.start()
        chunks = stream.chunks(file)
        pen.write(b"one\n")
        assert next(chunks) == ["one"]
        pen.write(b"two\nthr")
        assert next(chunks) == ["two"]
        pen.write(b"ee\nfour\nfi")
        assert next(chunks) == ["three", "four"]
        late.cancel()
        pen.close()
        assert list(chunks) == [["fi"]]


def test_a_long_file_is_read_block_by_block(tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "BLOCK", 64)
    path = tmp_path / "long"
    path.write_text("a line\n" * 100)
    with path.open("rb") as file:
        sizes = [len(some) for some in stream.chunks(file)]
    assert sum(sizes) == 100
    assert max(sizes) <= 10


@pytest.mark.parametrize("block", [1 << 16, 3])
def test_a_line_that_is_not_utf_8_is_named(monkeypatch, block):
    monkeypatch.setattr(stream, "BLOCK", block)
    with pytest.raises(RegardError, match="stdin must be UTF-8, but line 3 is not"):
        lines_of(b"one\n\nt\xffo\nfour\n")


def test_the_lines_of_earlier_blocks_come_before_the_error(monkeypatch):
    monkeypatch.setattr(stream, "BLOCK", 4)
    chunks = stream.chunks(BytesIO(b"one\n\xff\xff\xff\n"))
    assert next(chunks) == ["one"]
    with pytest.raises(RegardError, match="line 2"):
        next(chunks)


@pytest.mark.parametrize("block", [1 << 16, 1])
def test_a_byte_order_mark_is_no_part_of_the_first_line(monkeypatch, block):
    monkeypatch.setattr(stream, "BLOCK", block)
    assert lines_of("\ufeffone\n\ufefftwo\n".encode()) == ["one", "\ufefftwo"]
