import json
import resource

import numpy as np
import pytest

from regard._support import checksums, files
from regard.config import DataConfig
from regard.data import (
    EncodedPairs,
    Pair,
    Tokenizer,
    Tokenizers,
    dataset,
    encode_pairs,
    overlapping,
    rejection_reason,
    train_tokenizer,
)
from regard.errors import RegardError

PAIRS = [
    Pair("the red cat", "le chat rouge", (((0, 3), (0, 2)), ((4, 7), (8, 13)))),
    Pair("tea", "du thé"),
    Pair("我喜欢茶", "I like tea", (((0, 1), (0, 1)),)),
    Pair("two men are talking", "deux hommes parlent"),
    Pair("a", "b"),
]
TEXTS = [text for pair in PAIRS for text in pair[:2]]
BOTH = train_tokenizer(TEXTS * 2, "bpe", 320)
JOINT = Tokenizers(BOTH, BOTH)


@pytest.mark.parametrize("chunk", [1, 2, 10_000])
def test_encoded_pairs_equal_the_tokenizers_output_for_every_chunk_size(
    tmp_path, monkeypatch, chunk
):
    monkeypatch.setattr(dataset, "CHUNK_PAIRS", chunk)
    separate = Tokenizers(BOTH, train_tokenizer(TEXTS, "characters", 300))
    encoded = encode_pairs(PAIRS, separate, DataConfig(), tmp_path / "new" / "folder")
    assert len(encoded) == len(PAIRS)
    for number, pair in enumerate(PAIRS):
        source, target = encoded.pair(number)
        assert source.tolist() == separate.source.encode(pair.source)
        assert target.tolist() == separate.target.encode(pair.target)
    assert encoded.lengths[0].tolist() == [len(separate.source.encode(p.source)) for p in PAIRS]
    assert encoded.lengths[1].tolist() == [len(separate.target.encode(p.target)) for p in PAIRS]
    assert isinstance(encoded.source, np.memmap)
    assert encoded.dropped == {}


def test_encoded_pairs_are_loaded_as_written(tmp_path):
    encoded, loaded = (
        encode_pairs(PAIRS, JOINT, DataConfig(max_length=9), tmp_path),
        EncodedPairs.load(tmp_path),
    )
    assert EncodedPairs.is_complete(tmp_path)
    assert loaded.dropped == encoded.dropped != {}
    for one, other in zip(encoded[:-1], loaded[:-1], strict=True):
        assert one.tolist() == other.tolist()


def test_character_links_become_token_links(tmp_path):
    characters = train_tokenizer(TEXTS, "characters", 300)
    encoded = encode_pairs(PAIRS, Tokenizers(characters, characters), DataConfig(), tmp_path)
    # one token more than characters: a text starts with a space
    linked = {(source - 1, target - 1) for source, target in encoded.links_of(0).tolist()}
    assert linked == {(i, j) for i in range(3) for j in range(2)} | {
        (i, j) for i in range(4, 7) for j in range(8, 13)
    }
    assert encoded.links_of(1).shape == (0, 2)
    assert (encoded.links_of(2) - 1).tolist() == [[0, 0]]


def test_links_beyond_65535_tokens_are_stored(tmp_path):
    length = 66_000
    pair = Pair("a" * length, "b" * length, (((length - 1, length), (length - 1, length)),))
    characters = train_tokenizer(["a b"], "characters", 300)
    settings = DataConfig(max_length=length + 1)
    encoded = encode_pairs([pair], Tokenizers(characters, characters), settings, tmp_path)
    assert encoded.links_of(0).tolist() == [[length, length]]


def test_empty_corpus_is_encoded(tmp_path):
    encoded = encode_pairs([], JOINT, DataConfig(), tmp_path)
    assert len(encoded) == 0
    assert [len(lengths) for lengths in encoded.lengths] == [0, 0]


def test_ids_above_65535_are_kept(tmp_path):
    words = Tokenizer("words", [f" w{n}" for n in range(66_000)] + [" w", "w"])
    numbers = [words.encode(text) for text in ("w", "wwww")]
    assert max(numbers[1]) > np.iinfo(np.uint16).max
    encoded = encode_pairs([Pair("w", "wwww")], Tokenizers(BOTH, words), DataConfig(), tmp_path)
    assert encoded.pair(0)[1].tolist() == numbers[1]


def test_dropped_pairs_are_counted_by_reason(tmp_path):
    characters = train_tokenizer(TEXTS, "characters", 300)
    pairs = [
        Pair("kept", "gardé"),
        Pair("", "vide"),
        Pair("empty", "  "),
        Pair("", ""),
        Pair("x" * 40, "y" * 10),
        Pair("x" * 10, "y" * 40),
        Pair("x" * 11, "y"),
        Pair("x", "y" * 11),
        Pair("kept", "too"),
    ]
    settings = DataConfig(max_length=30, max_length_ratio=2.0)
    encoded = encode_pairs(pairs, Tokenizers(characters, characters), settings, tmp_path)
    assert encoded.dropped == {
        "empty source": 2,
        "empty target": 1,
        "source longer than 30 tokens": 1,
        "target longer than 30 tokens": 1,
        "one side more than 2 times the other": 2,
    }
    assert [characters.decode(encoded.pair(n)[0].tolist()) for n in range(len(encoded))] == [
        "kept",
        "kept",
    ]


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        (128, 128, None),
        (129, 128, "source longer than 128 tokens"),
        (128, 129, "target longer than 128 tokens"),
        (14, 1, None),
        (15, 1, "one side more than 9 times the other"),
        (1, 15, "one side more than 9 times the other"),
        (95, 10, None),
        (96, 10, "one side more than 9 times the other"),
    ],
)
def test_limits_are_inclusive(source, target, reason):
    assert rejection_reason(Pair("a", "b"), source, target, DataConfig()) == reason


def test_empty_side_is_the_first_reason():
    assert rejection_reason(Pair(" ", "b"), 500, 1, DataConfig()) == "empty source"
    assert rejection_reason(Pair("a", "\u2003"), 1, 500, DataConfig()) == "empty target"


@pytest.mark.parametrize(
    ("span", "indices"), [((0, 2), [1, 2]), ((2, 3), [3]), ((1, 9), [2, 3, 4]), ((3, 3), [])]
)
def test_spans_overlap_if_they_share_a_character(span, indices):
    assert overlapping([(0, 0), (0, 1), (1, 2), (2, 3), (3, 5)], span) == indices


def test_error_while_reading_keeps_the_old_files(tmp_path):
    before = encode_pairs(PAIRS, JOINT, DataConfig(), tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())

    def broken():
        yield PAIRS[0]
        raise RegardError("line 2 is broken")

    with pytest.raises(RegardError, match="line 2 is broken"):
        encode_pairs(broken(), JOINT, DataConfig(), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert EncodedPairs.load(tmp_path).source.tolist() == before.source.tolist()


@pytest.mark.parametrize("fatal", range(4))
def test_error_while_replacing_files_leaves_them_incomplete(tmp_path, monkeypatch, fatal):
    encode_pairs(PAIRS, JOINT, DataConfig(), tmp_path)
    write, calls = files.write_file, []

    def killed(path, content):
        if len(calls) == fatal:
            raise KeyboardInterrupt
        calls.append(path)
        write(path, content)

    monkeypatch.setattr(files, "write_file", killed)
    with pytest.raises(KeyboardInterrupt):
        encode_pairs(PAIRS[:2], JOINT, DataConfig(), tmp_path)
    assert not EncodedPairs.is_complete(tmp_path)
    with pytest.raises(RegardError, match=r"metadata\.json cannot be read: No such file"):
        EncodedPairs.load(tmp_path)


def test_temps_of_a_killed_process_are_removed(tmp_path):
    (tmp_path / ".source.tokens.12.tmp").write_bytes(b"half")
    encode_pairs(PAIRS, JOINT, DataConfig(), tmp_path)
    assert not list(tmp_path.glob(".*"))


def test_full_disk_is_reported_in_one_line_and_leaves_no_temps(tmp_path):
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, most))
    try:
        with pytest.raises(RegardError, match=r"^cannot write .*: File too large$"):
            encode_pairs(PAIRS * 5000, JOINT, DataConfig(), tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))
    assert list(tmp_path.iterdir()) == []


def test_impossible_folder_is_reported_in_one_line(tmp_path):
    (tmp_path / "file").write_text("old")
    with pytest.raises(RegardError, match=r"^cannot write .*file/source.tokens: "):
        encode_pairs(PAIRS, JOINT, DataConfig(), tmp_path / "file")


@pytest.mark.parametrize("name", ["source.tokens", "links.tokens", "target.starts"])
def test_damaged_files_are_refused_by_name(tmp_path, name):
    """Any flipped bit, any lost byte, an additional one, and the file of other pairs."""
    encode_pairs(PAIRS[::-1], JOINT, DataConfig(), tmp_path)
    other = (tmp_path / name).read_bytes()
    encode_pairs(PAIRS, JOINT, DataConfig(), tmp_path)
    data = (tmp_path / name).read_bytes()
    flipped = [bytearray(data) for _ in range(8 * len(data))]
    for bit, copy in enumerate(flipped):
        copy[bit // 8] ^= 1 << bit % 8
    truncated = [data[:size] for size in range(len(data))]
    for damaged in (*flipped, *truncated, data + b"\0", other):
        (tmp_path / name).write_bytes(damaged)
        with pytest.raises(RegardError, match=rf"^\S*{name} is damaged: its checksum is wrong$"):
            EncodedPairs.load(tmp_path)


@pytest.mark.parametrize("name", ["metadata.json", "source.tokens", "links.starts"])
def test_missing_file_is_reported_in_one_line(tmp_path, name):
    encode_pairs(PAIRS, JOINT, DataConfig(), tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(RegardError, match=rf"^\S*{name} cannot be read: No such file"):
        EncodedPairs.load(tmp_path)


@pytest.mark.parametrize("metadata", [{"a": 3}, {"identity": {}, "dtypes": {}}])
def test_invalid_metadata_is_refused(tmp_path, metadata):
    encode_pairs(PAIRS, JOINT, DataConfig(), tmp_path)
    for text in (checksums.dumps(metadata), json.dumps(metadata)):
        (tmp_path / "metadata.json").write_text(text)
        with pytest.raises(RegardError, match=r"metadata\.json is damaged: "):
            EncodedPairs.load(tmp_path)


def test_pairs_of_another_run_are_refused(tmp_path):
    identity = {"run": "7f", "part": "train"}
    encode_pairs(PAIRS, JOINT, DataConfig(), tmp_path, identity=identity)
    assert len(EncodedPairs.load(tmp_path, identity)) == len(PAIRS)
    with pytest.raises(
        RegardError, match=r"metadata\.json must be of part valid, but it is of part"
    ):
        EncodedPairs.load(tmp_path, {**identity, "part": "valid"})
