"""Scores by name: `make_score` builds one, `get_score` returns the shared one."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from regard.attention.scores.additive import Additive
from regard.attention.scores.base import Score
from regard.attention.scores.bilinear import Bilinear
from regard.attention.scores.cosine import Cosine
from regard.attention.scores.dot import Dot, ScaledDot
from regard.attention.scores.gaussian import Gaussian
from regard.attention.scores.kernels import Kernel, boxcar, epanechnikov, triangular, uniform
from regard.errors import RegardError, unknown_name

PARAMETER_FREE: Mapping[str, Callable[[], Score]] = MappingProxyType(
    {
        "dot": Dot,
        "scaled_dot": ScaledDot,
        "cosine": Cosine,
        "gaussian": Gaussian,
        "average": partial(Kernel, uniform),
        "boxcar": partial(Kernel, boxcar),
        "triangular": partial(Kernel, triangular),
        "epanechnikov": partial(Kernel, epanechnikov),
    }
)
"""Scores without parameters by default, which need no widths."""

PARAMETRIC: Mapping[str, Callable[[int, int], Score]] = MappingProxyType(
    {"bilinear": Bilinear, "additive": Additive}
)
"""Scores with parameters, built for a query width and a key width."""

ALIASES: Mapping[str, str] = MappingProxyType(
    {"bahdanau": "additive", "luong": "bilinear", "general": "bilinear"}
)
"""What the literature calls some of them."""

SCORE_NAMES = (*PARAMETER_FREE, *PARAMETRIC)
"""Every name, in the order of the tables."""

# built once: building a module takes longer than a small attention call
_SHARED = {name: build() for name, build in PARAMETER_FREE.items()}


def get_score(name: str) -> Score:
    """Return the shared score of this name, the same object every time.

    Args:
        name: one of `PARAMETER_FREE`; spaces and hyphens may be written for underscores.

    Raises:
        RegardError: if there is no such score, or it has parameters and cannot be shared.

    Example:
        >>> get_score("scaled dot") is get_score("scaled_dot")
        True
    """
    shared = _SHARED.get(name)  # first, because this runs on every call of attention
    if shared is None:
        shared = _SHARED.get(_canonical(name))
    return make_score(name) if shared is None else shared


def make_score(name: str, widths: tuple[int, int] | None = None) -> Score:
    """Build a new score by name.

    Args:
        name: one of `SCORE_NAMES` or `ALIASES`; spaces and hyphens may be written for underscores.
        widths: of queries and keys, for a score with parameters.

    Raises:
        RegardError: if there is no such score, or `widths` are missing.

    Example:
        >>> make_score("bahdanau", (12, 4)).widths
        (12, 4)
    """
    name = _canonical(name)
    if name in PARAMETER_FREE:
        return PARAMETER_FREE[name]()
    if name not in PARAMETRIC:
        raise unknown_name("attention score", name, (*SCORE_NAMES, *ALIASES))
    if widths is None:
        raise RegardError(
            f"score {name!r} has parameters, so its name is not enough here; build "
            f"score = regard.{name.capitalize()}(query_width, key_width) once and pass score=score"
        )
    return PARAMETRIC[name](*widths)


def _canonical(name: str) -> str:
    name = name.replace(" ", "_").replace("-", "_")
    return ALIASES.get(name, name)
