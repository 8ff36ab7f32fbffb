"""Attention: queries look at keys and gather their values.

What a layer costs over n words of width d, next to recurrence and a convolution of k words
(Vaswani et al. 2017, table 1); `complexity_table(n, d, k)` gives the numbers:

mechanism       work    steps  longest path
self-attention  n² d    1      1
recurrence      n d²    n      n
convolution     k n d²  1      n / k
"""

from regard.attention.additive import Additive as Additive
from regard.attention.attend import Looked as Looked
from regard.attention.attend import attend as attend
from regard.attention.attend import look as look
from regard.attention.attend import weights as weights
from regard.attention.bilinear import Bilinear as Bilinear
from regard.attention.branches import Branches as Branches
from regard.attention.complexity import Cost as Cost
from regard.attention.complexity import complexity as complexity
from regard.attention.complexity import complexity_table as complexity_table
from regard.attention.cosine import Cosine as Cosine
from regard.attention.dot import Dot as Dot
from regard.attention.dot import ScaledDot as ScaledDot
from regard.attention.fold import Folded as Folded
from regard.attention.gaussian import Gaussian as Gaussian
from regard.attention.kernels import Kernel as Kernel
from regard.attention.memory import Cache as Cache
from regard.attention.memory import Memory as Memory
from regard.attention.multihead import MultiHead as MultiHead
from regard.attention.regression import NadarayaWatson as NadarayaWatson
from regard.attention.scores import NAMES as NAMES
from regard.attention.scores import Score as Score
from regard.attention.scores import named as named
