import pytest

from regard._support import checksums

CONTENT = {"step": 7, "words": "été\u2028", "nested": {"list": [1, {}], "none": None}}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("digits", [16, 64])
def test_every_flipped_bit_lost_or_added_byte_is_noticed(indent, digits):
    data = checksums.dumps(CONTENT, key="7f", indent=indent, digits=digits).encode()
    assert checksums.loads(data, key="7f", digits=digits) == CONTENT
    flipped = [bytearray(data) for _ in range(8 * len(data))]
    for bit, copy in enumerate(flipped):
        copy[bit // 8] ^= 1 << bit % 8
    truncated = [data[:size] for size in range(len(data))]
    for damaged in (*flipped, *truncated, data + b"\n", data + b"}", data + data):
        with pytest.raises(checksums.ChecksumError, match="it has no checksum|checksum is wrong"):
            checksums.loads(bytes(damaged), key="7f", digits=digits)


def test_document_of_another_key_is_refused():
    data = checksums.dumps(CONTENT, key="7f").encode()
    for key in ("", "80"):
        with pytest.raises(checksums.ChecksumError, match="its checksum is wrong"):
            checksums.loads(data, key=key)
