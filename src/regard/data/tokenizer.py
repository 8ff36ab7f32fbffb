"""Tokenizers: text to token ids and back without loss, as words, characters or BPE pieces.

Ids begin with the special tokens, then one token per byte, then the learned pieces. A piece is
plain text with its leading space, so it can be read in any script. Text that no piece covers falls
back to bytes: every text decodes to itself. No text is ever encoded as a special token, whatever
it looks like.
"""

import json
from codecs import getincrementaldecoder
from collections.abc import Iterable, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from tokenizers import Regex
from tokenizers import Tokenizer as BPETokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import Split

from regard._support import checksums, files
from regard._support.reading import read_bounded
from regard._support.strict_json import parse_object
from regard._support.text import shorten
from regard.data.spans import Span, join_apostrophes
from regard.data.special_tokens import SPECIAL_TOKENS
from regard.errors import RegardError, unknown_name

TokenizerKind = Literal["bpe", "words", "characters"]

BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(256)]
FIRST_BYTE = len(SPECIAL_TOKENS)
FIRST_PIECE = FIRST_BYTE + len(BYTE_TOKENS)
FORMAT_VERSION = 2
MAX_FILE_BYTES = 1 << 28  # a vocabulary of 65,000 takes some 5 MB

# words with the space before them, Han characters and digits one by one, runs of punctuation,
# other white space
WORD_PATTERN = Regex(
    r" ?\p{Han}| ?[[\p{L}\p{M}]&&[^\p{Han}]]+| ?\p{N}| ?[^\s\p{L}\p{M}\p{N}]+|\s+(?!\S)|\s"
)


class Tokenizer:
    """A vocabulary, and how text is split into it.

    Args:
        kind: "bpe", "words" or "characters".
        pieces: the learned vocabulary, without special tokens and bytes.
        merges: the merges of BPE, in the order they were learned.

    Example:
        >>> tokenizer = Tokenizer("words", [" the", " cat"])
        >>> ids = tokenizer.encode("the cat!")
        >>> tokenizer.convert_ids_to_tokens(ids)
        [' the', ' cat', '<0x21>']
        >>> tokenizer.decode(ids)
        'the cat!'
    """

    def __init__(
        self, kind: TokenizerKind, pieces: Sequence[str], merges: Sequence[Sequence[str]] = ()
    ) -> None:
        self.kind: TokenizerKind = kind
        self.pieces = tuple(pieces)
        self.merges = tuple((left, right) for left, right in merges)
        self._ids = {piece: FIRST_PIECE + n for n, piece in enumerate(self.pieces)}
        self._split = Split(WORD_PATTERN, "isolated")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.kind}: {len(self):,} tokens>"

    def __len__(self) -> int:
        """Return the size of the vocabulary, special tokens and bytes included."""
        return FIRST_PIECE + len(self.pieces)

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text, without BOS and EOS."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode many texts, faster than one by one."""
        if self.kind == "bpe":
            prepared = [add_prefix_space(text) for text in texts]
            return [encoding.ids for encoding in self._bpe.encode_batch_fast(prepared)]
        return [
            [token for word in self.pre_tokenize(text) for token in self.encode_word(word)]
            for text in texts
        ]

    def pre_tokenize(self, text: str) -> list[str]:
        """Split a text into words with their leading space, or characters; no token spans two."""
        prepared = add_prefix_space(text)
        if self.kind == "characters":
            return list(prepared)
        return [word for word, _ in self._split.pre_tokenize_str(prepared)]

    def encode_word(self, word: str) -> list[int]:
        """Return the id of a piece, or else the ids of its characters, or else of their bytes."""
        if word in self._ids:
            return [self._ids[word]]
        if len(word) > 1:
            return [token for character in word for token in self.encode_word(character)]
        return [FIRST_BYTE + byte for byte in word.encode()]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of some tokens, without special tokens; invalid bytes become U+FFFD.

        Raises:
            RegardError: if an id is not of the vocabulary.
        """
        return self.to_bytes(ids).decode("utf-8", errors="replace").removeprefix(" ")

    def to_bytes(self, ids: Iterable[int]) -> bytes:
        """Return the UTF-8 of some tokens, with leading spaces and without special tokens.

        Raises:
            RegardError: if an id is not of the vocabulary.
        """
        return b"".join(self._bytes[token] for token in self._check_ids(ids))

    def encode_prefix(self, text: str) -> tuple[tuple[int, ...], bytes]:
        """Split the beginning of a text into the tokens of all words but the last, and that word.

        The last word may be incomplete, so how it is encoded depends on what follows: it is
        returned as bytes, with its leading space. White space before the text is ignored.

        Example:
            >>> tokenizer = Tokenizer("words", [" the", " cat"])
            >>> tokens, last_word = tokenizer.encode_prefix("the ca")
            >>> tokenizer.convert_ids_to_tokens(tokens), last_word
            ([' the'], b' ca')
        """
        *words, last = self.pre_tokenize(text.lstrip()) or [""]
        complete = "".join(words).removeprefix(" ")
        return tuple(self.encode(complete)), last.encode()

    def tokens_that_spell(self, data: bytes) -> list[int]:
        """Return the ids of tokens that begin with these bytes, or that these bytes begin with."""
        return [
            token
            for token, own in enumerate(self._bytes)
            if own and (own.startswith(data) or data.startswith(own))
        ]

    def offsets(self, ids: Sequence[int]) -> tuple[Span, ...]:
        """Return the span of each token in the decoded text.

        Tokens that are bytes of one character all cover that character.
        """
        decoder = getincrementaldecoder("utf-8")("replace")
        text, spans = "", []
        for token in ids:
            start = len(text)
            text += decoder.decode(self._bytes[token])
            is_partial = bool(decoder.getstate()[0])  # within a character of several bytes
            spans.append((start, len(text) + is_partial))
        prefix = int(text.startswith(" "))  # the space that was put before the text
        return tuple((max(start - prefix, 0), max(end - prefix, 0)) for start, end in spans)

    def word_spans(self, text: str) -> list[Span]:
        """Return the spans of the words and punctuation marks of a text, without spaces.

        An apostrophe within a word is part of it; see `join_apostrophes`.
        """
        words = self._split.pre_tokenize_str(_replace_surrogates(text))
        return join_apostrophes(
            text,
            [(end - len(word.lstrip()), end) for word, (_, end) in words if not word.isspace()],
        )

    def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]:
        """Return tokens as a reader should see them, with their leading space.

        Raises:
            RegardError: if an id is not of the vocabulary.
        """
        return [self._tokens[token] for token in self._check_ids(ids)]

    def _check_ids(self, ids: Iterable[int]) -> list[int]:
        """Return the ids as a list; a negative one would be counted from the end."""
        ids = list(ids)
        if ids and not (min(ids) >= 0 and max(ids) < len(self)):
            wrong = next(token for token in ids if not 0 <= token < len(self))
            raise RegardError(
                f"ids must be token ids from 0 to {len(self) - 1}, but one is {int(wrong)}"
            )
        return ids

    def to_dict(self) -> dict[str, Any]:
        """Return all that `from_dict` needs."""
        return {
            "version": FORMAT_VERSION,
            "kind": self.kind,
            "pieces": self.pieces,
            "merges": self.merges,
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Tokenizer":
        """Return the tokenizer that `to_dict` described.

        Raises:
            RegardError: if the format version is another one, or pieces and merges do not fit.
        """
        if content.get("version") != FORMAT_VERSION:
            raise RegardError(
                f"the tokenizer must have format version {FORMAT_VERSION}, but it has "
                f"{content.get('version')!r}"
            )
        kind, pieces, merges = content["kind"], content["pieces"], content["merges"]
        _check_parts(kind, pieces, merges)
        return cls(kind, pieces, merges)

    @cached_property
    def _bpe(self) -> BPETokenizer:
        tokens = (*SPECIAL_TOKENS, *BYTE_TOKENS)
        vocabulary = {token: n for n, token in enumerate(tokens)} | self._ids
        bpe = BPETokenizer(BPE(vocabulary, list(self.merges), byte_fallback=True, unk_token=None))
        bpe.pre_tokenizer = self._split
        return bpe

    @cached_property
    def _bytes(self) -> list[bytes]:
        """UTF-8 of each token."""
        single = [bytes([byte]) for byte in range(256)]
        return [b""] * len(SPECIAL_TOKENS) + single + [piece.encode() for piece in self.pieces]

    @cached_property
    def _tokens(self) -> list[str]:
        return [*SPECIAL_TOKENS, *BYTE_TOKENS, *self.pieces]


def _check_parts(kind: Any, pieces: Any, merges: Any) -> None:
    """Raise for a tokenizer that could not encode: such pieces and merges are never trained."""
    if kind not in get_args(TokenizerKind):
        raise unknown_name("tokenizer", str(kind), get_args(TokenizerKind))
    if not isinstance(pieces, list | tuple) or not all(isinstance(p, str) and p for p in pieces):
        raise RegardError("the tokenizer's pieces must be a list of strings that are not empty")
    known = {*pieces}
    reserved = known.intersection((*SPECIAL_TOKENS, *BYTE_TOKENS))
    if len(known) != len(pieces) or reserved:
        raise RegardError(
            "the tokenizer's pieces must be different from one another and from special tokens"
        )
    if not isinstance(merges, list | tuple):
        raise RegardError("the tokenizer's merges must be a list")
    for merge in merges:
        is_pair = isinstance(merge, list | tuple) and len(merge) == 2
        if not is_pair or not all(isinstance(part, str) and part in known for part in merge):
            raise RegardError(
                f"the tokenizer's merges must be pairs of its pieces, but one is {shorten(merge)}"
            )
        if merge[0] + merge[1] not in known:
            raise RegardError(
                f"the tokenizer's merges must give pieces, but {shorten(merge)} does not"
            )


def add_prefix_space(text: str) -> str:
    """Put a space before a text, so that its first word is encoded as any other."""
    return f" {_replace_surrogates(text)}" if text else ""


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode, by question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


class Tokenizers(NamedTuple):
    """The tokenizers of source and target; twice the same one for a joint vocabulary."""

    source: Tokenizer
    target: Tokenizer

    @property
    def vocab_sizes(self) -> tuple[int, int]:
        """Sizes of the source and target vocabularies."""
        return len(self.source), len(self.target)

    @property
    def digest(self) -> str:
        """SHA-256 of both tokenizers, to recognize them by."""
        return sha256(json.dumps(self._to_dict(), sort_keys=True).encode()).hexdigest()

    def _to_dict(self) -> dict[str, Any]:
        joint = self.source is self.target
        parts = {"both": self.source} if joint else {"source": self.source, "target": self.target}
        return {name: tokenizer.to_dict() for name, tokenizer in parts.items()}

    def save(self, path: Path, run_id: str = "") -> None:
        """Write both tokenizers to one JSON file, with a checksum and the id of their run."""
        files.write_file(path, checksums.dumps({"run": run_id, **self._to_dict()}))

    @classmethod
    def load(cls, path: Path, run_id: str = "") -> "Tokenizers":
        """Read the file that `save` wrote.

        Args:
            path: the file.
            run_id: the run that it must belong to, if it names one.

        Raises:
            RegardError: if the file cannot be read, is damaged, has another format version, or
                belongs to another run.
        """
        try:
            content = _verify(read_bounded(path, MAX_FILE_BYTES))
            actual_id = content.pop("run", "")
            parts = {name: Tokenizer.from_dict(part) for name, part in content.items()}
            both = parts.get("both")
            tokenizers = cls(both or parts["source"], both or parts["target"])
        except OSError as error:
            raise RegardError(f"cannot read the tokenizer {path}: {error.strerror}") from error
        except (checksums.ChecksumError, RegardError) as error:
            raise RegardError(
                f"{path} is not a tokenizer file of regard, or is damaged: {error}"
            ) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RegardError(f"{path} is not a tokenizer file of regard, or is damaged") from error
        if run_id and actual_id:
            checksums.check_identity(path, {"run": actual_id}, {"run": run_id})
        return tokenizers


def _verify(data: bytes) -> dict[str, Any]:
    """Return the content of a tokenizer file; an older format is named before its checksum."""
    try:
        return checksums.loads(data)
    except checksums.ChecksumError:
        for part in parse_object(data, "it").values():
            if isinstance(part, dict) and part.get("version") != FORMAT_VERSION:
                Tokenizer.from_dict(part)
        raise
