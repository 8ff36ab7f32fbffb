"""Sentences in groups of like length, that are translated together and share the cores out."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby, pairwise
from math import ceil

STEP = 32  # tokens by which sources of like length differ at most
CELLS = 8192  # tokens of a batch, times beams: enough to fill the kernels, little memory
LEAST = 2048  # the same: enough to be worth a core of its own


def groups_of(sources: Sequence[Sequence[int]], beams: int, cores: int) -> Iterator[list[int]]:
    """Part sentences that are not empty into groups of like length, longest first.

    Groups are as large as pays, and as many as give all cores equal shares.
    """
    lengths = {row: len(source) for row, source in enumerate(sources) if source}
    order = sorted(lengths, key=lambda row: -lengths[row])
    share = _share(beams * sum(lengths.values()), cores)
    for _, alike in groupby(order, key=lambda row: longest_text(lengths[row])):
        rows = list(alike)
        alike_lengths = [lengths[row] for row in rows]
        fewest = len(_filled(alike_lengths, CELLS // beams))
        count = max(fewest, ceil(beams * sum(alike_lengths) / share))
        count = count if count < cores else cores * ceil(count / cores)
        ends = accumulate(_sizes(alike_lengths, count))
        yield from (rows[first:end] for first, end in pairwise([0, *ends]))


def _share(cells: int, cores: int) -> int:
    """Say how many cells a group has, if each core has equally many groups."""
    rounds = max(ceil(cells / (cores * CELLS)), 1)
    return max(ceil(cells / (cores * rounds)), LEAST)


def _sizes(lengths: Sequence[int], count: int) -> list[int]:
    """Part falling lengths into so many groups at most, all about equally large."""
    cells = bisect_left(
        range(lengths[0] * len(lengths)), True, key=lambda c: len(_filled(lengths, c)) <= count
    )
    return _filled(lengths, cells)


def _filled(lengths: Sequence[int], cells: int) -> list[int]:
    """Fill one group after another, padding counted; say how many sentences each one takes."""
    sizes, taken = [], 0
    while taken < len(lengths):
        sizes.append(max(cells // lengths[taken], 1))
        taken += sizes[-1]
    return sizes


def longest_text(length: int) -> int:
    """Give how long a translation may be; the same for all of a group, whoever is in it."""
    return 2 * STEP * ceil(length / STEP) + 20
