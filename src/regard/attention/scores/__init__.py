"""Attention scores: one file for each formula.

`base` has `Score`, the base class with its documented defaults, `DotProductForm`, what a score
that is a dot product folds into, and `FunctionScore`, which wraps any other callable. `dot`,
`cosine`, `bilinear`, `additive`, `gaussian` and `kernels` hold the formulas, and `registry` finds
them by name. To add one, write a file and a line of the registry (docs/add-a-score.md).
"""

from regard.attention.scores.additive import Additive, TanhSum
from regard.attention.scores.base import (
    DotProductForm,
    FunctionScore,
    PositiveParameter,
    Score,
    ScoreFunction,
    as_score,
)
from regard.attention.scores.bilinear import Bilinear
from regard.attention.scores.cosine import Cosine
from regard.attention.scores.dot import Dot, ScaledDot
from regard.attention.scores.gaussian import Gaussian
from regard.attention.scores.kernels import (
    KERNEL_PROFILES,
    Kernel,
    boxcar,
    epanechnikov,
    triangular,
    uniform,
)
from regard.attention.scores.registry import (
    ALIASES,
    PARAMETER_FREE,
    PARAMETRIC,
    SCORE_NAMES,
    get_score,
    make_score,
)

__all__ = [
    "ALIASES",
    "KERNEL_PROFILES",
    "PARAMETER_FREE",
    "PARAMETRIC",
    "SCORE_NAMES",
    "Additive",
    "Bilinear",
    "Cosine",
    "Dot",
    "DotProductForm",
    "FunctionScore",
    "Gaussian",
    "Kernel",
    "PositiveParameter",
    "ScaledDot",
    "Score",
    "ScoreFunction",
    "TanhSum",
    "as_score",
    "boxcar",
    "epanechnikov",
    "get_score",
    "make_score",
    "triangular",
    "uniform",
]
