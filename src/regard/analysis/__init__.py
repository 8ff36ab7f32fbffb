"""Analysis of attention weights: what heads do, how attention flows, and word alignments.

`heads.py` measures each head of a trace, and finds induction heads in a batch of weights.
`head_selection.py` selects the head to look at first, `flow.py` combines layers and compares heads,
`alignment.py` has word alignments and their error rate, `alignment_heads.py` extracts them from
cross-attention, and `comparison.py` compares two traces. Every function that reads weights takes a
`Trace`, or several; results are numpy arrays.

`attribution.py` attributes an output of a model (`output_scores.py`) to its tokens, with
`relevance.py` and `input_attribution.py`, which reads inputs as vectors (`embedded_inputs.py`);
`layers.py` finds which maps are heads of one layer. It runs the model, and is imported only when it
is used, as it needs torch. So is `effects.py`, which measures what changes of attention do to a
metric: importance of heads, knocked-out edges, patched heads (`effect_results.py`).

Weights show where values were read from, not why a model decided as it did (Jain and Wallace 2019,
"Attention is not Explanation").
"""

from typing import TYPE_CHECKING, Any

from regard.analysis.alignment import Link, alignment_error_rate, symmetrise
from regard.analysis.alignment_heads import (
    AlignmentHead,
    best_alignment_head,
    extract_alignment,
    word_level_cross_attention,
)
from regard.analysis.comparison import MapDifference, difference
from regard.analysis.flow import head_similarity, rollout, weight_by_value_norm
from regard.analysis.head_selection import SelectedHead, select_head
from regard.analysis.heads import HeadStatistics, head_statistics, head_table, induction_scores

if TYPE_CHECKING:
    from regard.analysis.attribution import METHODS, attribute
    from regard.analysis.effect_results import HeadEffects, HeadImportance, KnockoutMatrix
    from regard.analysis.effects import (
        ablate_heads,
        head_importance,
        knockout_matrix,
        patch,
    )

__all__ = [
    "METHODS",
    "AlignmentHead",
    "HeadEffects",
    "HeadImportance",
    "HeadStatistics",
    "KnockoutMatrix",
    "Link",
    "MapDifference",
    "SelectedHead",
    "ablate_heads",
    "alignment_error_rate",
    "attribute",
    "best_alignment_head",
    "difference",
    "extract_alignment",
    "head_importance",
    "head_similarity",
    "head_statistics",
    "head_table",
    "induction_scores",
    "knockout_matrix",
    "patch",
    "rollout",
    "select_head",
    "symmetrise",
    "weight_by_value_norm",
    "word_level_cross_attention",
]


_EFFECTS = {
    "HeadEffects",
    "HeadImportance",
    "KnockoutMatrix",
    "ablate_heads",
    "head_importance",
    "knockout_matrix",
    "patch",
}


def __getattr__(name: str) -> Any:
    if name in _EFFECTS:
        from regard.analysis import effects

        return getattr(effects, name)
    if name in ("METHODS", "attribute"):  # need torch
        from regard.analysis import attribution

        return getattr(attribution, name)
    raise AttributeError(f"module 'regard.analysis' has no attribute {name!r}")
