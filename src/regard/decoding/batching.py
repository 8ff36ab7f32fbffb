"""Batches of sentences of similar length, balanced over the threads that decode them.

They depend on the sentences alone, not on the machine: the same sentences give the same rounding
errors, and so the same translations to the last bit, on any number of threads and processes.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby, pairwise
from math import ceil, log2

LENGTH_STEP = 32  # sources of one batch have lengths from one interval of this many tokens
MAX_TOKENS = 8192  # of a batch, times beams: enough to fill the kernels, with little memory
MIN_TOKENS = 2048  # of a batch, times beams: about what is worth a thread of its own
# Equal shares of the sentences. In one thread, 300 sentences take the same CPU time in 12 batches
# as in 4 (width 256, 3 layers, 5 beams): what small batches lose, they save in padding.
SHARES = 16


def length_batches(sources: Sequence[Sequence[int]], beam_size: int) -> Iterator[list[int]]:
    """Split non-empty sources into batches of similar length; yield their rows, longest first.

    Batches are as large as pays, and as many as give 2, 4, 8 or 16 threads equal shares.
    """
    lengths = {row: len(source) for row, source in enumerate(sources) if source}
    order = sorted(lengths, key=lambda row: -lengths[row])
    share = _batch_tokens(beam_size * sum(lengths.values()))
    for _, similar in groupby(order, key=lambda row: max_target_length(lengths[row])):
        rows = list(similar)
        row_lengths = [lengths[row] for row in rows]
        fewest = len(_fill(row_lengths, MAX_TOKENS // beam_size))
        count = max(fewest, ceil(beam_size * sum(row_lengths) / share))
        ends = accumulate(_batch_sizes(row_lengths, _even(count)))
        yield from (rows[first:end] for first, end in pairwise([0, *ends]))


def max_target_length(source_length: int) -> int:
    """Return the greatest length of a translation: the same for all sources of a batch.

    It depends on the sentence alone, not on which others are in its batch.
    """
    return 2 * LENGTH_STEP * ceil(source_length / LENGTH_STEP) + 20


def _batch_tokens(tokens: int) -> int:
    """Return the tokens of a batch if every share has equally many batches."""
    rounds = max(ceil(tokens / (SHARES * MAX_TOKENS)), 1)
    return max(ceil(tokens / (SHARES * rounds)), MIN_TOKENS)


def _even(count: int) -> int:
    """Round up to a power of two, or to a multiple of the shares."""
    return SHARES * ceil(count / SHARES) if count > SHARES else 2 ** ceil(log2(count))


def _batch_sizes(lengths: Sequence[int], count: int) -> list[int]:
    """Split descending lengths into at most `count` batches of about the same tokens."""
    tokens = bisect_left(
        range(lengths[0] * len(lengths)), True, key=lambda n: len(_fill(lengths, n)) <= count
    )
    return _fill(lengths, tokens)


def _fill(lengths: Sequence[int], tokens: int) -> list[int]:
    """Fill batches of `tokens`, padding included, one by one; return their numbers of items."""
    sizes, taken = [], 0
    while taken < len(lengths):
        sizes.append(max(tokens // lengths[taken], 1))
        taken += sizes[-1]
    return sizes
