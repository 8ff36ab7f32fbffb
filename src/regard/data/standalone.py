"""Tokenizers as files of the `tokenizers` library, for programs that do not use regard."""

from tokenizers import Regex, decoders, normalizers
from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import Split

from regard.data.special_tokens import SPECIAL_TOKENS
from regard.data.tokenizer import BYTE_TOKENS, WORD_PATTERN, Tokenizer

ANY_CHARACTER = Regex(r"(?m:.)")  # of Oniguruma: also line breaks


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
