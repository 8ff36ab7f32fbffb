"""Attention: queries look at keys and gather their values.

What a layer costs over n words of width d, next to recurrence and a convolution of k words
(Vaswani et al. 2017, table 1); `complexity_table(n, d, k)` gives the numbers:

mechanism       work    steps  longest path
self-attention  n² d    1      1
recurrence      n d²    n      n
convolution     k n d²  1      n / k
"""

from regard.attention.beam_cache import BeamTree as BeamTree
from regard.attention.complexity import Cost as Cost
from regard.attention.complexity import complexity as complexity
from regard.attention.complexity import complexity_table as complexity_table
from regard.attention.functional import AttentionOutput as AttentionOutput
from regard.attention.functional import attend as attend
from regard.attention.functional import look as look
from regard.attention.functional import weights as weights
from regard.attention.kernel_regression import NadarayaWatson as NadarayaWatson
from regard.attention.kv_cache import KeyValues as KeyValues
from regard.attention.kv_cache import KVCache as KVCache
from regard.attention.multihead import MultiHeadAttention as MultiHeadAttention
from regard.attention.scores.additive import Additive as Additive
from regard.attention.scores.base import DotProductForm as DotProductForm
from regard.attention.scores.bilinear import Bilinear as Bilinear
from regard.attention.scores.cosine import Cosine as Cosine
from regard.attention.scores.dot import Dot as Dot
from regard.attention.scores.dot import ScaledDot as ScaledDot
from regard.attention.scores.gaussian import Gaussian as Gaussian
from regard.attention.scores.kernels import Kernel as Kernel
from regard.attention.scores.registry import SCORE_NAMES as SCORE_NAMES
from regard.attention.scores.registry import Score as Score
from regard.attention.scores.registry import make_score as make_score
