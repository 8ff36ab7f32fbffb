"""Captured attention calls, one class per way in which PyTorch code computes attention.

All follow the `CapturedCall` protocol: they hold the call's inputs and recompute any block of its
weights. `vectors.py` has the queries and keys of a call, `mask_analysis.py` reads masks,
`score_copy.py` copies scores that may change when they are called, and `edited.py` has the weights
that `regard.edit` replaced. To recognise another mechanism, add a
class here and create it in `regard.capture.recogniser`.

    SDPACall             torch.nn.functional.scaled_dot_product_attention
    FlexCall             torch.nn.attention.flex_attention
    RegardCall           regard's own attention, of any score
    MaterializedWeights  softmax(...) @ values written out in the model
    EdgeWeights          weights of the edges of a graph, multiplied with values and summed by index
    KernelCall           fused kernels that transformers runs through its AttentionInterface
    SlidingWindowCall    any of them over a cache that has dropped its first keys
"""

from regard.capture.calls.base import CapturedCall, repeat_groups, to_four_axes
from regard.capture.calls.edges import EdgeWeights
from regard.capture.calls.edited import (
    EditedWeights,
    edited_weights,
    register_edited_weights,
    with_edits,
)
from regard.capture.calls.flex import FlexCall
from regard.capture.calls.kernel import KernelCall, visible_keys
from regard.capture.calls.mask_analysis import as_tensor, is_causal
from regard.capture.calls.materialized import MaterializedWeights
from regard.capture.calls.regard import RegardCall, capture_regard_call
from regard.capture.calls.score_copy import side_effect_free_copy
from regard.capture.calls.sdpa import SDPACall
from regard.capture.calls.sliding_window import SlidingWindowCall
from regard.capture.calls.vectors import QueryKeyVectors

__all__ = [
    "CapturedCall",
    "EdgeWeights",
    "EditedWeights",
    "FlexCall",
    "KernelCall",
    "MaterializedWeights",
    "QueryKeyVectors",
    "RegardCall",
    "SDPACall",
    "SlidingWindowCall",
    "as_tensor",
    "capture_regard_call",
    "edited_weights",
    "is_causal",
    "register_edited_weights",
    "repeat_groups",
    "side_effect_free_copy",
    "to_four_axes",
    "visible_keys",
    "with_edits",
]
