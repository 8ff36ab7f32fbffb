"""Score functions: one file for each formula, a base, and a registry by name."""

from regard.attention.scores.additive import Additive as Additive
from regard.attention.scores.base import DotProductForm as DotProductForm
from regard.attention.scores.base import folds as folds
from regard.attention.scores.bilinear import Bilinear as Bilinear
from regard.attention.scores.cosine import Cosine as Cosine
from regard.attention.scores.dot import Dot as Dot
from regard.attention.scores.dot import ScaledDot as ScaledDot
from regard.attention.scores.gaussian import Gaussian as Gaussian
from regard.attention.scores.kernels import Kernel as Kernel
from regard.attention.scores.registry import SCORE_NAMES as SCORE_NAMES
from regard.attention.scores.registry import Score as Score
from regard.attention.scores.registry import get_score as get_score
from regard.attention.scores.registry import make_score as make_score
