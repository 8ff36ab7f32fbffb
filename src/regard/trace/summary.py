"""Summaries of attention maps: the heaviest keys of each row, a coarse picture, and sums."""

from dataclasses import replace

import numpy as np

from regard.trace.attention_map import AttentionMap, AttentionSummary
from regard.trace.quantization import Array
from regard.trace.trace import Trace

TOP_KEYS = 8
"""Keys that a summary keeps of each row, by default."""

MAX_TILES = 64
"""Rows and columns of the coarse picture in a summary."""


def summarize(trace: Trace, top: int = TOP_KEYS) -> Trace:
    """Replace the weights of all maps by summaries, so that long inputs make small files.

    Args:
        trace: maps that are summaries already stay as they are.
        top: keys kept of each row. 12 layers of 12 heads over 512 tokens are 4.5 MiB of JSON with
            8 keys, and 3.8 MiB with 6.

    Returns:
        A new trace.

    Example:
        >>> from regard.trace import build_translation_trace
        >>> trace = build_translation_trace(["the", "cat"], ["chat"], cross=[[[[0.25, 0.75]]]])
        >>> summary = summarize(trace, top=1).maps[0].summary
        >>> summary.top_keys.tolist(), summary.top_weights.tolist()
        ([[[1]]], [[[0.75]]])
    """
    return replace(trace, maps=tuple(_summarize_map(m, top) for m in trace.maps))


def _summarize_map(attention_map: AttentionMap, top: int) -> AttentionMap:
    if attention_map.weights is None:
        return attention_map
    summary = summarize_weights(attention_map.weights, top)
    return replace(attention_map, weights=None, summary=summary)


def summarize_weights(weights: Array, top: int = TOP_KEYS) -> AttentionSummary:
    """Summarize weights (head, query, key); of equally heavy keys, the first come first."""
    import torch  # here, so that reading and drawing a trace do not load it

    from regard.trace.block_summary import allocate_summary, summarize_blocks

    dtype = torch.float64 if weights.dtype == np.float64 else torch.float32
    tensor = torch.tensor(weights, dtype=dtype, device="cpu")
    heads, queries, keys = tensor.shape
    summary = allocate_summary((heads,), queries, keys, top, dtype)
    summarize_blocks(lambda rows: tensor[:, rows], summary, stable=True)
    return AttentionSummary(
        top_keys=summary.top_keys.numpy().astype(np.int64),
        **{name: x.numpy() for name, x in summary._asdict().items() if name != "top_keys"},
    )
