"""Data: from text files to padded batches of token ids.

- `corpus` reads sentence pairs (`Pair`) from files; a `Corpus` can be read repeatedly, and names
  its files. `checks` reports what is odd about one, for `regard doctor`, and warns of sentences
  that are unlike it.
- `vocabulary` trains a `Tokenizer`; `tokenizer` encodes and decodes, and saves both sides as
  `Tokenizers`; `special_tokens` are the ids that every vocabulary shares.
- `dataset` encodes pairs into memory-mapped files (`EncodedPairs`), dropping empty and overlong
  ones; `bpe_dropout` samples other segmentations of them.
- `batching` groups encoded pairs by length and pads them (`Batch`).
- `spans` locates words and tokens in texts, which word alignments are made of.
- `phrasebook` is an embedded corpus with gold alignments.

Importing this package does not import torch; only `batching` needs it, and is imported on first
use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from regard.data.bpe_dropout import BPEDropout, PairBPEDropout
from regard.data.checks import check_corpus, input_warnings, unseen_words
from regard.data.corpus import Corpus, FilePath, Pair, pair_lines, read_lines, read_pairs
from regard.data.dataset import (
    MIN_SPLIT_PAIRS,
    EncodedPairs,
    encode_pairs,
    is_plausible,
    rejection_reason,
)
from regard.data.spans import Span, WordSpans, find_words, overlapping, whitespace_spans
from regard.data.special_tokens import BOS, EOS, PAD, SPECIAL_TOKENS, UNK
from regard.data.tokenizer import Tokenizer, Tokenizers
from regard.data.vocabulary import to_library_tokenizer, train_tokenizer

if TYPE_CHECKING:
    from regard.data.batching import Batch as Batch
    from regard.data.batching import Indices as Indices
    from regard.data.batching import batch_by_length as batch_by_length
    from regard.data.batching import check_token_ids as check_token_ids
    from regard.data.batching import collate as collate
    from regard.data.batching import collate_tokens as collate_tokens
    from regard.data.batching import pad_sequences as pad_sequences
    from regard.data.batching import shard as shard

__all__ = [
    "BOS",
    "EOS",
    "MIN_SPLIT_PAIRS",
    "PAD",
    "SPECIAL_TOKENS",
    "UNK",
    "BPEDropout",
    "Batch",
    "Corpus",
    "EncodedPairs",
    "FilePath",
    "Indices",
    "Pair",
    "PairBPEDropout",
    "Span",
    "Tokenizer",
    "Tokenizers",
    "WordSpans",
    "batch_by_length",
    "check_corpus",
    "check_token_ids",
    "collate",
    "collate_tokens",
    "encode_pairs",
    "find_words",
    "input_warnings",
    "is_plausible",
    "overlapping",
    "pad_sequences",
    "pair_lines",
    "read_lines",
    "read_pairs",
    "rejection_reason",
    "shard",
    "to_library_tokenizer",
    "train_tokenizer",
    "unseen_words",
    "whitespace_spans",
]


def __getattr__(name: str) -> Any:
    """Import batching on first use: it needs torch, which takes seconds to import."""
    if name not in __all__:
        raise AttributeError(f"module 'regard.data' has no attribute {name!r}")
    return getattr(import_module("regard.data.batching"), name)
