"""Analysis of attention weights: what heads do, how attention flows, and word alignments.

`heads.py` measures each head of a trace, `flow.py` combines layers and compares heads,
`alignment.py` has word alignments and their error rate, `alignment_heads.py` extracts them from
cross-attention, and `comparison.py` compares two traces. All work on numpy arrays.

Weights show where values were read from, not why a model decided as it did (Jain and Wallace 2019,
"Attention is not Explanation").
"""

from regard.analysis.alignment import Link, align, alignment_error_rate, symmetrise
from regard.analysis.alignment_heads import (
    AlignmentHead,
    BestHead,
    Row,
    best_alignment_head,
    best_head_from_weights,
    extract_alignment,
    word_level_cross_attention,
)
from regard.analysis.comparison import MapDifference, difference
from regard.analysis.flow import head_similarity, rollout, weight_by_value_norm
from regard.analysis.heads import HeadStatistics, head_statistics, head_table

__all__ = [
    "AlignmentHead",
    "BestHead",
    "HeadStatistics",
    "Link",
    "MapDifference",
    "Row",
    "align",
    "alignment_error_rate",
    "best_alignment_head",
    "best_head_from_weights",
    "difference",
    "extract_alignment",
    "head_similarity",
    "head_statistics",
    "head_table",
    "rollout",
    "symmetrise",
    "weight_by_value_norm",
    "word_level_cross_attention",
]
