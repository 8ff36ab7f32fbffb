"""Training of vocabularies by the `tokenizers` library, and tokenizers in that library's format."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import get_args

from tokenizers import Regex, decoders, normalizers
from tokenizers import Tokenizer as BPETokenizer
from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import Split
from tokenizers.trainers import BpeTrainer

from regard.data.special_tokens import SPECIAL_TOKENS
from regard.data.tokenizer import (
    BYTE_TOKENS,
    FIRST_PIECE,
    WORD_PATTERN,
    Tokenizer,
    TokenizerKind,
    add_prefix_space,
)
from regard.errors import RegardError, unknown_name

ANY_CHARACTER = Regex(r"(?m:.)")  # of Oniguruma: also line breaks


def train_tokenizer(
    texts: Iterable[str], kind: TokenizerKind = "bpe", vocab_size: int = 8000
) -> Tokenizer:
    """Train a tokenizer on texts; equal texts give an equal vocabulary.

    Args:
        texts: the texts, read once.
        kind: "bpe", "words" (unknown words are spelled in characters) or "characters".
        vocab_size: maximal size of the vocabulary, special tokens and bytes included.

    Returns:
        The tokenizer.

    Raises:
        RegardError: if there is no such kind, or `vocab_size` does not exceed the number of special
            tokens and bytes.

    Example:
        >>> tokenizer = train_tokenizer(["the cat", "the dog"], "words", vocab_size=300)
        >>> tokenizer.convert_ids_to_tokens(tokenizer.encode("the god"))
        [' the', ' ', 'g', 'o', 'd']
    """
    if kind not in get_args(TokenizerKind):
        raise unknown_name("tokenizer", kind, get_args(TokenizerKind))
    size = vocab_size - FIRST_PIECE
    if size < 1:
        raise RegardError(
            f"data.vocab_size must be above {FIRST_PIECE}, the special tokens and bytes, "
            f"but it is {vocab_size}"
        )
    if kind == "bpe":
        return _train_bpe((add_prefix_space(text) for text in texts), size)
    untrained = Tokenizer(kind, ())
    counts = Counter(word for text in texts for word in untrained.pre_tokenize(text))
    characters = Counter[str]()
    for word, count in counts.items():
        characters.update(dict.fromkeys(word, count))
    alphabet = _most_frequent(characters, size // 4 if kind == "words" else size)
    words = _most_frequent(counts, size)
    return Tokenizer(kind, list(dict.fromkeys([*alphabet, *words]))[:size])


def _most_frequent(counts: Counter[str], limit: int) -> list[str]:
    """Return the most frequent strings, ties in alphabetical order, so that results repeat."""
    return sorted(counts, key=lambda string: (-counts[string], string))[:limit]


def _train_bpe(texts: Iterable[str], size: int) -> Tokenizer:
    bpe = BPETokenizer(BPE())
    bpe.pre_tokenizer = Split(WORD_PATTERN, "isolated")
    alphabet_size = max(size // 2, 1)
    trainer = BpeTrainer(
        vocab_size=size, min_frequency=2, limit_alphabet=alphabet_size, show_progress=False
    )
    bpe.train_from_iterator(_break_ties(texts, alphabet_size), trainer)
    model = json.loads(bpe.to_str())["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
    reserved = {*SPECIAL_TOKENS, *BYTE_TOKENS}  # a piece of such a name would take its id
    merges = [(a, b) for a, b in model["merges"] if not {a, b, a + b} & reserved]
    return Tokenizer("bpe", [piece for piece in pieces if piece not in reserved], merges)


def _break_ties(texts: Iterable[str], alphabet_size: int) -> Iterator[str]:
    """Yield the texts and then the most frequent characters once more.

    Of equally frequent characters the trainer would drop random ones at the limit of its alphabet,
    and learn another vocabulary each time.
    """
    counts = Counter[str]()
    for text in texts:
        counts.update(text)
        yield text
    yield from _most_frequent(counts, alphabet_size)


def to_library_tokenizer(tokenizer: Tokenizer) -> LibraryTokenizer:
    """Return a tokenizer of the `tokenizers` library with the same tokens.

    Words and characters are written as BPE without merges: a word that is a piece is one token,
    and any other falls back to its characters, and these to their bytes.

    Example:
        >>> tokenizer = Tokenizer("words", [" the", " cat"])
        >>> library = to_library_tokenizer(tokenizer)
        >>> library.encode("the cat!").tokens
        [' the', ' cat', '<0x21>']
        >>> library.decode(library.encode("the cat!").ids)
        'the cat!'
    """
    tokens = (*SPECIAL_TOKENS, *BYTE_TOKENS, *tokenizer.pieces)
    model = BPE(
        {token: n for n, token in enumerate(tokens)},
        list(tokenizer.merges),
        byte_fallback=True,
        unk_token=None,
        ignore_merges=tokenizer.kind != "bpe",
    )
    library = LibraryTokenizer(model)
    library.normalizer = normalizers.Sequence([normalizers.Strip(), normalizers.Prepend(" ")])
    pattern = ANY_CHARACTER if tokenizer.kind == "characters" else WORD_PATTERN
    library.pre_tokenizer = Split(pattern, "isolated")
    library.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return library
