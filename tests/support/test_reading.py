import gzip
import re
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard._support import reading
from regard._support.reading import GzipReader, bounded_lines, decompress
from regard.errors import RegardError


@given(st.lists(st.binary(max_size=20)), st.integers(1, 30))
def test_lines_are_those_of_the_standard_library(parts, limit):
    data = b"\n".join(parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "MAX_LINE_BYTES", limit)
        expected = BytesIO(data).readlines()
        too_long = next((n for n, line in enumerate(expected, 1) if len(line) > limit), None)
        if too_long is None:
            assert list(bounded_lines(BytesIO(data).readline, "file")) == expected
        else:
            with pytest.raises(RegardError, match=f"but line {too_long} is longer"):
                list(bounded_lines(BytesIO(data).readline, "file"))


def test_concatenated_members_are_read_in_order():
    data = gzip.compress(b"a\nb") + gzip.compress(b"c\n") + bytes(5)  # and zeros as padding
    reader = GzipReader(BytesIO(data), len(data), "file")
    assert list(bounded_lines(reader.readline, "file")) == [b"a\n", b"bc\n"]
    assert decompress(data, "file") == b"a\nbc\n"


@pytest.mark.parametrize("ratio, fits", [(50, True), (1000, False)])
def test_expansion_is_limited_by_the_size_of_the_file(monkeypatch, ratio, fits):
    monkeypatch.setattr(reading, "MIN_GZIP_LIMIT", 10)
    text = bytes(10**6)
    data = gzip.compress(text) + bytes(len(text) // ratio)
    if fits:
        assert decompress(data, "file") == text
    else:
        with pytest.raises(RegardError, match="file must decompress to at most 100 times its size"):
            decompress(data, "file")


def test_members_that_expand_little_by_little_are_limited_together(monkeypatch):
    monkeypatch.setattr(reading, "MIN_GZIP_LIMIT", 10)
    data = gzip.compress(b"\n" * 10**5) * 20
    reader = GzipReader(BytesIO(data), len(data), "file")
    with pytest.raises(RegardError, match="file must decompress to at most 100 times its size"):
        for _ in bounded_lines(reader.readline, "file"):
            pass


@pytest.mark.parametrize("damage", ["truncated", "CRC", "length", "garbage"])
def test_damaged_file_is_refused(damage):
    data = bytearray(gzip.compress(b"some text\n" * 99))
    if damage == "truncated":
        del data[-9:]
    elif damage == "garbage":
        data += b"garbage"
    else:
        data[-8 if damage == "CRC" else -4] ^= 1
    with pytest.raises(RegardError, match=re.escape("file must be a .gz file, but it is damaged")):
        decompress(bytes(data), "file")
