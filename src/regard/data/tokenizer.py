"""Text to tokens and back, exactly: words, characters or BPE pieces; one file on disk.

Pieces are text as it stands, a leading space included, so that they can be read in any
script. What no piece covers is spelled in bytes: any text comes back as it was. No text is
ever taken for a special token, whatever it looks like.
"""

import json
from codecs import getincrementaldecoder
from collections.abc import Iterable, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tokenizers import Regex
from tokenizers import Tokenizer as Engine
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import Split

from regard._support import files
from regard.data.spans import Span
from regard.data.special_tokens import SPECIAL_TOKENS
from regard.errors import RegardError

Kind = Literal["bpe", "words", "characters"]

BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(256)]
FIRST_BYTE = len(SPECIAL_TOKENS)
FIRST_PIECE = FIRST_BYTE + len(BYTE_TOKENS)
FORMAT_VERSION = 1

# letters with the space before them, Han characters and digits one by one, marks in runs,
# other spaces
WORD_PATTERN = Regex(
    r" ?\p{Han}| ?[[\p{L}\p{M}]&&[^\p{Han}]]+| ?\p{N}| ?[^\s\p{L}\p{M}\p{N}]+|\s+(?!\S)|\s"
)


class Tokenizer:
    """Turns text into numbers and back."""

    def __init__(
        self, kind: Kind, pieces: Sequence[str], merges: Sequence[Sequence[str]] = ()
    ) -> None:
        self.kind: Kind = kind
        self.pieces = tuple(pieces)  # the ones after the special tokens and the bytes
        self.merges = tuple((left, right) for left, right in merges)
        self._number = {piece: FIRST_PIECE + n for n, piece in enumerate(self.pieces)}
        self._split = Split(WORD_PATTERN, "isolated")

    def __len__(self) -> int:
        return FIRST_PIECE + len(self.pieces)

    def encode(self, text: str) -> list[int]:
        """Give the numbers of a text's pieces, without start and end."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode many texts, faster than one by one."""
        if self.kind == "bpe":
            ready = [add_prefix_space(text) for text in texts]
            return [encoding.ids for encoding in self._engine.encode_batch_fast(ready)]
        return [
            [n for part in self.pre_tokenize(text) for n in self.encode_word(part)]
            for text in texts
        ]

    def pre_tokenize(self, text: str) -> list[str]:
        """Take a text apart where no piece goes beyond: words with the space before, or letters."""
        ready = add_prefix_space(text)
        if self.kind == "characters":
            return list(ready)
        return [part for part, _ in self._split.pre_tokenize_str(ready)]

    def encode_word(self, part: str) -> list[int]:
        """Take a part whole, or letter by letter, or byte by byte."""
        if part in self._number:
            return [self._number[part]]
        if len(part) > 1:
            return [number for letter in part for number in self.encode_word(letter)]
        return [FIRST_BYTE + byte for byte in part.encode()]

    def decode(self, ids: Iterable[int]) -> str:
        """Give the text of some tokens; special ones say nothing."""
        written = b"".join(self._bytes[token] for token in ids)
        return written.decode("utf-8", errors="replace").removeprefix(" ")

    def offsets(self, ids: Sequence[int]) -> tuple[Span, ...]:
        """Tell which characters of their text each of some tokens covers."""
        reader = getincrementaldecoder("utf-8")("replace")
        read, spans = "", []
        for token in ids:
            start = len(read)
            read += reader.decode(self._bytes[token])
            halfway = bool(reader.getstate()[0])  # within a character of several bytes
            spans.append((start, len(read) + halfway))
        before = int(read.startswith(" "))  # the space that was put before the text
        moved = ((max(start - before, 0), max(end - before, 0)) for start, end in spans)
        return tuple(moved)

    def word_spans(self, text: str) -> list[tuple[int, int]]:
        """Tell where the words and marks of a text are, spaces left out."""
        parts = self._split.pre_tokenize_str(_readable(text))
        return [(end - len(part.lstrip()), end) for part, (_, end) in parts if not part.isspace()]

    def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]:
        """Name each token as a reader should see it; a leading space is kept."""
        return [self._names[token] for token in ids]

    def to_dict(self) -> dict[str, Any]:
        """Give all that `from_dict` needs."""
        return {
            "version": FORMAT_VERSION,
            "kind": self.kind,
            "pieces": self.pieces,
            "merges": self.merges,
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Tokenizer":
        """Make a tokenizer from what `to_dict` gave."""
        if content.get("version") != FORMAT_VERSION:
            raise RegardError(
                f"a tokenizer of version {FORMAT_VERSION} is wanted, not {content.get('version')!r}"
            )
        return cls(content["kind"], content["pieces"], content["merges"])

    @cached_property
    def _engine(self) -> Engine:
        vocabulary = {
            name: n for n, name in enumerate((*SPECIAL_TOKENS, *BYTE_TOKENS))
        } | self._number
        engine = Engine(BPE(vocabulary, list(self.merges), byte_fallback=True, unk_token=None))
        engine.pre_tokenizer = self._split
        return engine

    @cached_property
    def _bytes(self) -> list[bytes]:
        """What each token writes."""
        single = [bytes([byte]) for byte in range(256)]
        return [b""] * len(SPECIAL_TOKENS) + single + [piece.encode() for piece in self.pieces]

    @cached_property
    def _names(self) -> list[str]:
        return [*SPECIAL_TOKENS, *BYTE_TOKENS, *self.pieces]


def add_prefix_space(text: str) -> str:
    """Put a space before a text, so that its first word looks like any other."""
    return f" {_readable(text)}" if text else ""


def _readable(text: str) -> str:
    """Give text that can be written: half of a surrogate pair, which cannot, becomes a ?."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _checksum(content: dict[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class Tokenizers(NamedTuple):
    """The tokenizers of source and target; the same one twice if they share a vocabulary."""

    source: Tokenizer
    target: Tokenizer

    @property
    def vocab_sizes(self) -> tuple[int, int]:
        """How many tokens each vocabulary has."""
        return len(self.source), len(self.target)

    def save(self, path: Path) -> None:
        """Write both as one JSON file."""
        joint = self.source is self.target
        parts = {"both": self.source} if joint else {"source": self.source, "target": self.target}
        content = {name: tokenizer.to_dict() for name, tokenizer in parts.items()}
        whole = content | {"checksum": _checksum(content)}
        files.write_file(path, json.dumps(whole, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> "Tokenizers":
        """Read what `save` wrote."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content.pop("checksum", None) not in (None, _checksum(content)):
                raise ValueError("another checksum")
            made = {name: Tokenizer.from_dict(part) for name, part in content.items()}
            both = made.get("both")
            return cls(both or made["source"], both or made["target"])
        except OSError as problem:
            raise RegardError(f"cannot read the tokenizer {path}: {problem.strerror}") from problem
        except RegardError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise RegardError(f"{path} is not a tokenizer of regard, or was damaged") from problem
