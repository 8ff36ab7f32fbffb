"""A vocabulary, learned from texts: the commonest words or letters, or BPE's merges."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator

from tokenizers import Tokenizer as Engine
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import Split
from tokenizers.trainers import BpeTrainer

from regard.data.special_tokens import SPECIAL_TOKENS
from regard.data.tokenizer import (
    BYTE_TOKENS,
    FIRST_PIECE,
    WORD_PATTERN,
    Kind,
    Tokenizer,
    add_prefix_space,
)
from regard.errors import RegardError


def train_tokenizer(texts: Iterable[str], kind: Kind = "bpe", pieces: int = 8000) -> Tokenizer:
    """Learn a vocabulary of at most `pieces` tokens, special ones and bytes among them."""
    room = pieces - FIRST_PIECE
    if room < 1:
        raise RegardError(
            f"data.vocab_size must be above {FIRST_PIECE}, the special tokens and bytes, "
            f"but it is {pieces}"
        )
    if kind == "bpe":
        return _train_bpe((add_prefix_space(text) for text in texts), room)
    empty = Tokenizer(kind, ())
    counts = Counter(part for text in texts for part in empty.pre_tokenize(text))
    letters = Counter[str]()
    for part, count in counts.items():
        letters.update(dict.fromkeys(part, count))
    kept = [letter for letter, _ in _commonest(letters, room // 4 if kind == "words" else room)]
    words = [part for part, _ in _commonest(counts, room)]
    return Tokenizer(kind, list(dict.fromkeys(kept + words))[:room])


def _commonest(counts: Counter[str], most: int) -> list[tuple[str, int]]:
    """Rank by count, and alike ones by name, so that the order never depends on chance."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most]


def _train_bpe(texts: Iterable[str], room: int) -> Tokenizer:
    engine = Engine(BPE())
    engine.pre_tokenizer = Split(WORD_PATTERN, "isolated")
    letters = max(room // 2, 1)
    trainer = BpeTrainer(
        vocab_size=room, min_frequency=2, limit_alphabet=letters, show_progress=False
    )
    engine.train_from_iterator(_favoured(texts, letters), trainer)
    learned = json.loads(engine.to_str())["model"]
    pieces = sorted(learned["vocab"], key=learned["vocab"].__getitem__)
    names = {
        *SPECIAL_TOKENS,
        *BYTE_TOKENS,
    }  # a piece that looks like one of these would stand for it
    kept = [piece for piece in pieces if piece not in names]
    merges = [(a, b) for a, b in learned["merges"] if not {a, b, a + b} & names]
    return Tokenizer("bpe", kept, merges)


def _favoured(texts: Iterable[str], most: int) -> Iterator[str]:
    """Hand on the texts and, after them, the commonest letters once more.

    Of letters that are equally common the trainer would drop some by chance, and learn another
    vocabulary each time.
    """
    counts = Counter[str]()
    for text in texts:
        counts.update(text)
        yield text
    yield from (letter for letter, _ in _commonest(counts, most))
