"""The table of scores by name."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from torch import Tensor, nn

from regard.attention.scores.additive import Additive
from regard.attention.scores.bilinear import Bilinear
from regard.attention.scores.cosine import Cosine
from regard.attention.scores.dot import Dot, ScaledDot
from regard.attention.scores.gaussian import Gaussian
from regard.attention.scores.kernels import Kernel, boxcar, epanechnikov, triangular, uniform
from regard.errors import RegardError, unknown_name

Score = Callable[[Tensor, Tensor], Tensor]
"""Any function of (queries, keys) that gives scores; with a `fold`, it runs in the fused kernel."""

PARAMETER_FREE: Mapping[str, Callable[[], nn.Module]] = MappingProxyType(
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
"""Scores that need no widths, because they have nothing to learn or one number at most."""

PARAMETRIC: Mapping[str, Callable[[int, int], nn.Module]] = MappingProxyType(
    {"bilinear": Bilinear, "additive": Additive}
)
"""Scores with weights to learn, made for a query width and a key width."""

SCORE_NAMES = (*PARAMETER_FREE, *PARAMETRIC)


ALIASES: Mapping[str, str] = MappingProxyType(
    {"bahdanau": "additive", "luong": "bilinear", "general": "bilinear"}
)
"""Names that the literature uses for scores of the table."""

# built once: building a module takes longer than a small attention call
_SHARED = {name: make() for name, make in PARAMETER_FREE.items()}


def get_score(name: str) -> nn.Module:
    """Return the shared score of that name; it has no parameters that a caller could change."""
    name = canonical_name(name)
    return _SHARED[name] if name in _SHARED else make_score(name)


def make_score(name: str, widths: tuple[int, int] | None = None) -> nn.Module:
    """Build the score of that name, for the given query and key widths if it has parameters."""
    name = canonical_name(name)
    if name in PARAMETER_FREE:
        return PARAMETER_FREE[name]()
    if name not in PARAMETRIC:
        raise unknown_name("attention score", name, SCORE_NAMES)
    if widths is None:
        raise RegardError(
            f"score {name!r} has parameters, so its name is not enough here; build "
            f"score = regard.{name.capitalize()}(query_width, key_width) once and pass score=score"
        )
    return PARAMETRIC[name](*widths)


def canonical_name(name: str) -> str:
    """Return the name in the spelling of the table, with aliases resolved."""
    name = name.replace(" ", "_").replace("-", "_")
    return ALIASES.get(name, name)
