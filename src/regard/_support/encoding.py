"""The encoding of text input: UTF-8, with or without a byte order mark."""

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE

from regard.errors import RegardError

# the mark of UTF-32 begins with that of UTF-16, so it is compared first
OTHER_ENCODINGS = {
    BOM_UTF32_LE: "utf-32",
    BOM_UTF32_BE: "utf-32",
    BOM_UTF16_LE: "utf-16",
    BOM_UTF16_BE: "utf-16",
}


def strip_byte_order_mark(line: bytes, name: object) -> bytes:
    """Remove the byte order mark of UTF-8 from the first line of a text.

    Args:
        line: the first line.
        name: what the line is from, for the message.

    Raises:
        RegardError: if the mark is that of UTF-16 or UTF-32.

    Example:
        >>> strip_byte_order_mark(b"\\xef\\xbb\\xbfa cat", "pairs.tsv")
        b'a cat'
    """
    for mark, encoding in OTHER_ENCODINGS.items():
        if line.startswith(mark):
            raise RegardError(
                f"{name} must be UTF-8, but it is {encoding.upper()}, by its byte order mark; "
                f"`iconv -f {encoding} -t utf-8` can convert it"
            )
    return line.removeprefix(BOM_UTF8)
