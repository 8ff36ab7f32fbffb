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
from regard.attention.scores.kernels import Kernel, boxcar, epanechnikov, flat, triangular
from regard.errors import unknown_name

Score = Callable[[Tensor, Tensor], Tensor]
"""Any function of (queries, keys) that gives scores; with a `fold`, it runs in the fused kernel."""

PARAMETER_FREE: Mapping[str, Callable[[], nn.Module]] = MappingProxyType(
    {
        "dot": Dot,
        "scaled dot": ScaledDot,
        "cosine": Cosine,
        "gaussian": Gaussian,
        "average": partial(Kernel, flat),
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

NAMES = (*PARAMETER_FREE, *PARAMETRIC)


# made once: making a module takes longer than a small attention does
_SHARED = {name: make() for name, make in PARAMETER_FREE.items()}


def shared(name: str) -> nn.Module:
    """Give the score of that name, always the same: it has nothing that a caller could change."""
    return _SHARED[name] if name in _SHARED else named(name)


def named(name: str, widths: tuple[int, int] | None = None) -> nn.Module:
    """Make the score of that name, for the given query and key widths if it learns weights."""
    name = name.replace("_", " ").replace("-", " ")
    if name in PARAMETER_FREE:
        return PARAMETER_FREE[name]()
    if name not in PARAMETRIC:
        raise unknown_name("attention score", name, NAMES)
    if widths is None:
        maker = name.capitalize()
        raise ValueError(
            f"{name!r} has weights to learn, so its name is not enough here; "
            f"make score = regard.{maker}(query_width, key_width) once and pass it as score="
        )
    return PARAMETRIC[name](*widths)
