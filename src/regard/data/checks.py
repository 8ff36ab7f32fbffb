"""What is odd about a corpus, and what a training would leave out."""

import unicodedata
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import accumulate
from pathlib import Path

from regard._support.progress import track
from regard.config import DataConfig
from regard.data.corpus import Pair, read_pairs
from regard.data.dataset import rejection_reason

EXAMPLES = 3  # line numbers named for each finding
TRAPS = {
    "\r": "a carriage return within a line",
    "\u2028": "U+2028, which some programs take for the end of a line",
    "\u2029": "U+2029, which some programs take for the end of a line",
    "\x85": "U+0085, which some programs take for the end of a line",
    "\x0b": "a vertical tab, which some programs take for the end of a line",
    "\x0c": "a form feed, which some programs take for the end of a line",
    "\ufeff": "a byte order mark within the text",
    "\ufffd": "U+FFFD: text that was damaged when it was converted",
}


class _Found:
    """How often something was found, and on which lines first."""

    def __init__(self) -> None:
        self.count, self.lines = 0, list[int]()

    def add(self, line: int) -> None:
        self.count += 1
        if len(self.lines) < EXAMPLES:
            self.lines.append(line)

    def __str__(self) -> str:
        where = ", ".join(map(str, self.lines)) + (", …" * (self.count > EXAMPLES))
        return f"line {where}"


def check_corpus(paths: Sequence[Path], test: Sequence[Path] | None = None) -> Iterator[str]:
    """Read all pairs once, and tell what was found, line by line."""
    findings: dict[str, _Found] = {}
    seen: set[bytes] = set()
    lengths = Counter[tuple[int, int]]()
    scripts = Counter[str](), Counter[str]()
    tested = _tested(test)
    for number, pair in enumerate(track(read_pairs(paths), "pairs examined"), 1):
        for finding in _odd(pair, seen, tested):
            findings.setdefault(finding, _Found()).add(number)
        seen.add(_mark(*pair[:2]))
        lengths[_words(pair.source), _words(pair.target)] += 1
        for side, text in enumerate((pair.source, pair.target)):
            scripts[side].update(_script(sign) for sign in text[:200] if sign.isalpha())
    yield f"{lengths.total():,} pairs in {' and '.join(map(str, paths))}"
    if lengths:
        yield from _about_lengths(lengths)
        for name, counts in zip(("source", "target"), scripts, strict=True):
            yield f"scripts of the {name}: {_shares(counts)}"
    for finding, found in sorted(findings.items(), key=lambda item: -item[1].count):
        yield f"{found.count:,} × {finding} ({found})"
    left = sum(found.count for finding, found in findings.items() if finding.endswith(OUT))
    yield f"a training would leave out {left:,} pairs and learn from {lengths.total() - left:,}"


OUT = ": left out"


def _odd(pair: Pair, seen: set[bytes], tested: set[bytes]) -> Iterator[str]:
    source, target = _words(pair.source), _words(pair.target)
    if reason := rejection_reason(pair, source, target, DataConfig()):
        yield f"{reason.replace('pieces', 'words')}{OUT}"
    if _mark(*pair[:2]) in seen:
        yield "the same pair again"
    if _mark(pair.source) in tested:
        yield "a source that is also in the test pairs"
    if pair.source and pair.source == pair.target:
        yield "source and target are the same"
    for sign, name in TRAPS.items():
        if sign in pair.source or sign in pair.target:
            yield name
    if any(unicodedata.normalize("NFC", text) != text for text in pair[:2]):
        yield "letters and accents apart (not NFC)"


def _tested(test: Sequence[Path] | None) -> set[bytes]:
    return {_mark(pair.source) for pair in read_pairs(test)} if test else set()


def _mark(*texts: str) -> bytes:
    """Stand for texts in a few bytes: all pairs of a large corpus shall fit into memory."""
    return blake2b("\t".join(texts).encode(), digest_size=12).digest()


def _words(text: str) -> int:
    """Count words, or characters where words are not parted by spaces."""
    han = sum("\u3040" <= letter <= "\u9fff" for letter in text)
    return len(text.split()) + max(han - 1, 0)


def _about_lengths(lengths: Counter[tuple[int, int]]) -> Iterator[str]:
    for side, name in enumerate(("source", "target")):
        counts = Counter[float]()
        for pair, times in lengths.items():
            counts[float(pair[side])] += times
        yield f"{name}: {_middle(counts):g} words in the middle, {max(counts):g} at most"
    ratios = Counter[float]()
    for (source, target), times in lengths.items():
        if source and target:
            ratios[target / source] += times
    if ratios:
        yield f"target words to a source word: {_middle(ratios):.2f} in the middle"


def _middle(counts: Counter[float]) -> float:
    """Give the median of values that came so many times each."""
    ordered = sorted(counts)
    ends = list(accumulate(counts[value] for value in ordered))
    lower, upper = ((ends[-1] - 1) // 2, ends[-1] // 2)
    return (ordered[bisect(ends, lower)] + ordered[bisect(ends, upper)]) / 2


def _script(letter: str) -> str:
    """Name the script of a letter, by the first word of its Unicode name."""
    return unicodedata.name(letter, "unknown").split()[0].lower()


def _shares(counts: Counter[str]) -> str:
    total = max(sum(counts.values()), 1)
    told = [f"{name} {count / total:.1%}" for name, count in counts.most_common(4)]
    return ", ".join(told) or "none"
