"""Attention: score → softmax → weighted sum, where only the score differs between mechanisms.

How the files work together: `functional` has `attend`, `weights` and `look`. Each call is checked
by `call`, which makes it an `AttentionCall`; `functional` chooses one of the three `backends`
(fused, blockwise, dense), and `observer` lets others see the call. `scores` holds one file for each
formula. `multihead` puts heads around any score, with `kv_cache` for incremental decoding and
`beam_cache` for beams that share one cache. `kernel_regression` is attention without a network,
`convert` exchanges parameters with torch, and `complexity` compares costs::

    mechanism       operations  sequential  max path length
    self-attention  n² d        1           1
    recurrence      n d²        n           n
    convolution     k n d²      1           n / k

for a layer over n positions of width d, with kernels of k (Vaswani et al. 2017, table 1).
"""

from regard.attention.backends import BACKENDS, Backend, BackendName
from regard.attention.beam_cache import BeamTree
from regard.attention.call import AttentionCall
from regard.attention.complexity import LayerCost, complexity, complexity_table
from regard.attention.functional import AttentionOutput, attend, look, weights
from regard.attention.kernel_regression import KERNELS, NadarayaWatson
from regard.attention.kv_cache import KeyValues, KVCache
from regard.attention.multihead import MultiHeadAttention
from regard.attention.observer import Observer, register_observer
from regard.attention.scores import (
    KERNEL_PROFILES,
    SCORE_NAMES,
    Additive,
    Bilinear,
    Cosine,
    Dot,
    DotProductForm,
    FunctionScore,
    Gaussian,
    Kernel,
    ScaledDot,
    Score,
    as_score,
    get_score,
    make_score,
)

__all__ = [
    "BACKENDS",
    "KERNELS",
    "KERNEL_PROFILES",
    "SCORE_NAMES",
    "Additive",
    "AttentionCall",
    "AttentionOutput",
    "Backend",
    "BackendName",
    "BeamTree",
    "Bilinear",
    "Cosine",
    "Dot",
    "DotProductForm",
    "FunctionScore",
    "Gaussian",
    "KVCache",
    "Kernel",
    "KeyValues",
    "LayerCost",
    "MultiHeadAttention",
    "NadarayaWatson",
    "Observer",
    "ScaledDot",
    "Score",
    "as_score",
    "attend",
    "complexity",
    "complexity_table",
    "get_score",
    "look",
    "make_score",
    "register_observer",
    "weights",
]
