"""What is odd about a corpus, and what a training would leave out."""

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from regard.config import Data
from regard.text.corpus import Pair, read
from regard.text.encoded import unfit

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


def examine(paths: Sequence[Path], test: Sequence[Path] | None = None) -> Iterator[str]:
    """Read all pairs once, and tell what was found, line by line."""
    findings: dict[str, list[int]] = {}
    seen: dict[tuple[str, str], int] = {}
    lengths: list[tuple[int, int]] = []
    scripts = Counter[str](), Counter[str]()
    tested = _tested(test)
    for number, pair in enumerate(read(paths), 1):
        for finding in _odd(pair, seen, tested):
            findings.setdefault(finding, []).append(number)
        seen.setdefault(pair[:2], number)
        lengths.append((_words(pair.source), _words(pair.target)))
        for side, text in enumerate((pair.source, pair.target)):
            scripts[side].update(_script(sign) for sign in text[:200] if sign.isalpha())
    yield f"{len(lengths):,} pairs in {' and '.join(map(str, paths))}"
    if lengths:
        yield from _about_lengths(lengths)
        for name, counts in zip(("source", "target"), scripts, strict=True):
            yield f"scripts of the {name}: {_shares(counts)}"
    for finding, numbers in sorted(findings.items(), key=lambda item: -len(item[1])):
        where = ", ".join(map(str, numbers[:EXAMPLES])) + (", …" * (len(numbers) > EXAMPLES))
        yield f"{len(numbers):,} × {finding} (line {where})"
    left = sum(len(numbers) for finding, numbers in findings.items() if finding.endswith(OUT))
    yield f"a training would leave out {left:,} pairs and learn from {len(lengths) - left:,}"


OUT = ": left out"


def _odd(pair: Pair, seen: dict[tuple[str, str], int], tested: set[str]) -> Iterator[str]:
    source, target = _words(pair.source), _words(pair.target)
    if reason := unfit(pair, source, target, Data()):
        yield f"{reason.replace('pieces', 'words')}{OUT}"
    if pair[:2] in seen:
        yield "the same pair again"
    if pair.source in tested:
        yield "a source that is also in the test pairs"
    if pair.source and pair.source == pair.target:
        yield "source and target are the same"
    for sign, name in TRAPS.items():
        if sign in pair.source or sign in pair.target:
            yield name
    if any(unicodedata.normalize("NFC", text) != text for text in pair[:2]):
        yield "letters and accents apart (not NFC)"


def _tested(test: Sequence[Path] | None) -> set[str]:
    return {pair.source for pair in read(test)} if test else set()


def _words(text: str) -> int:
    """Count words, or characters where words are not parted by spaces."""
    han = sum("\u3040" <= letter <= "\u9fff" for letter in text)
    return len(text.split()) + max(han - 1, 0)


def _about_lengths(lengths: list[tuple[int, int]]) -> Iterator[str]:
    for side, name in enumerate(("source", "target")):
        counts = [pair[side] for pair in lengths]
        yield f"{name}: {median(counts):g} words in the middle, {max(counts)} at most"
    ratios = [target / source for source, target in lengths if source and target]
    if ratios:
        yield f"target words to a source word: {median(ratios):.2f} in the middle"


def _script(letter: str) -> str:
    """Name the script of a letter, by the first word of its Unicode name."""
    return unicodedata.name(letter, "unknown").split()[0].lower()


def _shares(counts: Counter[str]) -> str:
    total = max(sum(counts.values()), 1)
    told = [f"{name} {count / total:.1%}" for name, count in counts.most_common(4)]
    return ", ".join(told) or "none"
