"""Checks of texts: what is odd about a corpus, and sentences that a model was not trained for."""

import re
import unicodedata
from bisect import bisect
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from hashlib import blake2b
from itertools import accumulate

from regard._support.progress import track
from regard._support.text import count
from regard.config import DataConfig
from regard.data.corpus import (
    FilePath,
    Pair,
    check_rereadable,
    describe_ignored_columns,
    read_pairs,
    to_paths,
)
from regard.data.dataset import MIN_SPLIT_PAIRS, rejection_reason
from regard.data.tokenizer import Tokenizer

MAX_EXAMPLE_LINES = 3  # line numbers listed for each finding
MAX_SCRIPT_SAMPLE = 200  # characters of a text whose scripts are counted
DROPPED = ": dropped in training"
TROUBLESOME_CHARACTERS = {
    "\r": "a carriage return within a line",
    "\u2028": "U+2028, which some programs take for the end of a line",
    "\u2029": "U+2029, which some programs take for the end of a line",
    "\x85": "U+0085, which some programs take for the end of a line",
    "\x0b": "a vertical tab, which some programs take for the end of a line",
    "\x0c": "a form feed, which some programs take for the end of a line",
    "\ufeff": "a byte order mark within the text",
    "\ufffd": "U+FFFD: text that was damaged when it was converted",
}
TROUBLESOME_RANGES = {
    re.compile(
        "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]"
    ): "a control character, as in terminal output",
    re.compile(
        "[\u202a-\u202e\u2066-\u2069]"
    ): "a control of text direction, which is not displayed",
}

MAX_UNKNOWN_SHARE = 0.5  # of the characters of a sentence
EXAMPLE_CHARACTERS = 20
EXAMPLE_WORDS = 5


class _Count:
    """Number of occurrences of a finding, and the lines of the first ones."""

    def __init__(self) -> None:
        self.total, self.lines = 0, list[int]()

    def add(self, line: int) -> None:
        self.total += 1
        if len(self.lines) < MAX_EXAMPLE_LINES:
            self.lines.append(line)

    def __str__(self) -> str:
        more = ", …" if self.total > MAX_EXAMPLE_LINES else ""
        return f"line {', '.join(map(str, self.lines))}{more}"


def check_corpus(
    paths: FilePath | Sequence[FilePath], test: FilePath | Sequence[FilePath] | None = None
) -> Iterator[str]:
    """Read a corpus once and yield a report, line by line.

    The report has the number of pairs, median and maximal lengths, scripts, oddities with the
    lines of the first ones, how many pairs training would drop with default settings, and whether
    they are too few to hold some out for validation.

    Args:
        paths: one TSV file or two parallel files.
        test: test pairs, in the same form, whose sources must not occur in the corpus.

    Raises:
        RegardError: if a file cannot be read.
    """
    paths, test = to_paths(paths), to_paths(test or ())
    for path in (*paths, *test):
        check_rereadable(path)
    findings: dict[str, _Count] = {}
    known_pairs: set[bytes] = set()
    lengths = Counter[tuple[int, int]]()
    scripts = Counter[str](), Counter[str]()
    test_sources = {_digest(pair.source) for pair in read_pairs(test)} if test else set()
    for line, pair in enumerate(track(read_pairs(paths), "pairs checked"), 1):
        for finding in _findings(pair, known_pairs, test_sources):
            findings.setdefault(finding, _Count()).add(line)
        known_pairs.add(_digest(pair.source, pair.target))
        lengths[_count_words(pair.source), _count_words(pair.target)] += 1
        for counts, text in zip(scripts, (pair.source, pair.target), strict=True):
            counts.update(map(_script, filter(str.isalpha, text[:MAX_SCRIPT_SAMPLE])))
    yield f"{count(lengths.total(), 'pair')} in {' and '.join(map(str, paths))}"
    if note := describe_ignored_columns(paths):
        yield note
    if lengths:
        yield from _length_report(lengths)
        for side, counts in zip(("source", "target"), scripts, strict=True):
            yield f"{side} scripts: {_format_shares(counts)}"
    for finding, lines in sorted(findings.items(), key=lambda item: -item[1].total):
        yield f"{lines.total:,} × {finding} ({lines})"
    dropped = sum(lines.total for finding, lines in findings.items() if finding.endswith(DROPPED))
    used = lengths.total() - dropped
    yield f"training would drop {count(dropped, 'pair')} and use {used:,}"
    if lengths.total() < MIN_SPLIT_PAIRS:
        yield (
            f"but training refuses fewer than {MIN_SPLIT_PAIRS} pairs without validation pairs of "
            "their own: `regard train --valid` names them"
        )


def _findings(pair: Pair, known_pairs: set[bytes], test_sources: set[bytes]) -> Iterator[str]:
    """Yield what is odd about a pair."""
    source, target = _count_words(pair.source), _count_words(pair.target)
    if reason := rejection_reason(pair, source, target, DataConfig()):
        yield f"{reason.replace('tokens', 'words')}{DROPPED}"
    if _digest(pair.source, pair.target) in known_pairs:
        yield "duplicate pair"
    if _digest(pair.source) in test_sources:
        yield "source also in the test pairs"
    if all(len(text) > 1 and text[0] == text[-1] == '"' for text in (pair.source, pair.target)):
        yield "quotation marks around source and target, as in an exported table: they are learned"
    if pair.source and pair.source == pair.target:
        yield "source and target are equal"
    for character, description in TROUBLESOME_CHARACTERS.items():
        if character in pair.source or character in pair.target:
            yield description
    for characters, description in TROUBLESOME_RANGES.items():
        if characters.search(pair.source) or characters.search(pair.target):
            yield description
    if any(unicodedata.normalize("NFC", text) != text for text in (pair.source, pair.target)):
        yield "accents as separate characters (not NFC)"


def _digest(*texts: str) -> bytes:
    """Hash texts to 12 bytes, so that all pairs of a large corpus fit into memory."""
    return blake2b("\t".join(texts).encode(), digest_size=12).digest()


def _count_words(text: str) -> int:
    """Count words, or characters in Chinese and Japanese, which write no spaces."""
    han = sum("\u3040" <= letter <= "\u9fff" for letter in text)
    return len(text.split()) + max(han - 1, 0)


def _length_report(lengths: Counter[tuple[int, int]]) -> Iterator[str]:
    for side, name in enumerate(("source", "target")):
        counts = Counter[float]()
        for pair, times in lengths.items():
            counts[float(pair[side])] += times
        yield f"{name} words: median {_median(counts):g}, maximum {max(counts):g}"
    ratios = Counter[float]()
    for (source, target), times in lengths.items():
        if source and target:
            ratios[target / source] += times
    if ratios:
        yield f"target words per source word: median {_median(ratios):.2f}"


def _median(counts: Counter[float]) -> float:
    """Return the median of values with their multiplicities."""
    values = sorted(counts)
    ends = list(accumulate(counts[value] for value in values))
    lower, upper = ((ends[-1] - 1) // 2, ends[-1] // 2)
    return (values[bisect(ends, lower)] + values[bisect(ends, upper)]) / 2


def _script(letter: str) -> str:
    """Return the script of a letter: the first word of its Unicode name."""
    return unicodedata.name(letter, "unknown").split()[0].lower()


def _format_shares(counts: Counter[str]) -> str:
    total = max(counts.total(), 1)
    return ", ".join(f"{name} {n / total:.1%}" for name, n in counts.most_common(4)) or "none"


def input_warnings(
    tokenizer: Tokenizer,
    sentences: Sequence[str],
    max_length: int,
    words: Collection[str] | None = None,
) -> dict[str, str]:
    """Return warnings of sentences that are unlike the training data.

    They are about "characters", "words" and "length".

    Args:
        tokenizer: the tokenizer of the source.
        sentences: the sentences.
        max_length: the most tokens of a training sentence.
        words: all words of the training data in lower case, if they are known.

    Example:
        >>> tokenizer = Tokenizer("words", [" the", " cat"])
        >>> input_warnings(tokenizer, ["the cat", "مرحبا"], max_length=128)["characters"]
        "most characters of 1 sentence are not in the model's vocabulary, such as 'مرحبا'"
    """
    known = {character for piece in tokenizer.pieces for character in piece}
    unknown = [text for text in sentences if _unknown_share(text, known) > MAX_UNKNOWN_SHARE]
    warnings = {}
    if unknown:
        warnings["characters"] = (
            f"most characters of {count(len(unknown), 'sentence')} are not in the model's "
            f"vocabulary, such as {_shorten(unknown[0])!r}"
        )
    elif words is not None and (unseen := unseen_words(sentences, words)):
        warnings["words"] = (
            f"the model was trained with {count(len(words), 'word')}, which do not include "
            f"{', '.join(map(repr, map(_shorten, unseen[:EXAMPLE_WORDS])))}"
        )
    lengths = [len(tokens) for tokens in tokenizer.encode_batch(sentences)]
    too_long = sum(length > max_length for length in lengths)
    if too_long:
        verb = "is" if too_long == 1 else "are"
        warnings["length"] = (
            f"{count(too_long, 'sentence')} {verb} longer than any in training: "
            f"{max(lengths):,} tokens, but at most {max_length:,} were seen; split the text into "
            "sentences"
        )
    return warnings


def _unknown_share(text: str, known: set[str]) -> float:
    characters = [character for character in text if not character.isspace()]
    unknown = sum(character not in known for character in characters)
    return unknown / max(len(characters), 1)


def unseen_words(sentences: Sequence[str], words: Collection[str]) -> list[str]:
    """Return the distinct words of sentences that are not among the given ones, in order.

    Args:
        sentences: the sentences.
        words: the known words in lower case; "s" of "cat's" is one of its own.

    Example:
        >>> unseen_words(["The dog's bone.", "A bone?"], {"the", "a", "dog", "s"})
        ['bone']
    """
    known = frozenset(words)
    found = dict.fromkeys(re.findall(r"\w+(?:'\w+)?", " ".join(sentences).replace("’", "'")))
    return [word for word in found if not known.issuperset(word.lower().split("'"))]


def _shorten(text: str) -> str:
    text = text.strip()
    return text if len(text) <= EXAMPLE_CHARACTERS else f"{text[:EXAMPLE_CHARACTERS]}…"
