"""The `Score` base class, how a score folds into a dot product, and scores from plain functions."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from regard._support.torch_modes import upcast
from regard.errors import RegardError
from regard.shapes import Keys, Queries, Scores

ScoreFunction = Callable[[Tensor, Tensor], Tensor]
"""Any function of queries `(*batch, query, width)` and keys `(*batch, key, width)` to scores."""


class DotProductForm(NamedTuple):
    """Queries and keys such that `softmax(score) = softmax(scale · queries·keys + key_bias)`.

    Attributes:
        queries: `(*batch, query, width')`.
        keys: `(*batch, key, width')`.
        scale: factor of the dot product.
        key_bias: `(*batch, key)`, added to the score of a key with every query; None adds nothing.

    Example:
        >>> from regard.attention import Gaussian
        >>> form = Gaussian(bandwidth=2.0).fold(torch.randn(5, 3), torch.randn(7, 3))
        >>> form.scale, form.key_bias.shape
        (0.25, torch.Size([7]))
    """

    queries: Tensor
    keys: Tensor
    scale: float = 1.0
    key_bias: Tensor | None = None

    def absorb_key_bias(self) -> "DotProductForm":
        """Return an equal form without key bias: one more column of keys, with ones in queries."""
        if self.key_bias is None:
            return self
        column = (self.key_bias / self.scale)[..., None]
        queries = pad(self.queries, (0, 1), value=1.0)
        return DotProductForm(queries, torch.cat([self.keys, column], dim=-1), self.scale)


class Score(nn.Module):
    """Base class of attention scores: a module that rates every key for every query.

    A subclass implements `forward(queries, keys) -> scores`, which is its formula, and overrides
    those of the following that differ from their defaults. Each pair must be scored by itself: a
    backend may pass some of the queries at a time.

    - `fold`: the score as a dot product. With it, attention runs in torch's fused kernel.
    - `project_queries`, `project_keys`, `pairwise`: a score that first projects both sides, such
      as additive attention, does so here, so that keys are projected once and compared many times:
      `score(q, k)` is `score.pairwise(score.project_queries(q), score.project_keys(k))`.
    - `needs_equal_widths`, `widths`: what is checked before the score is called.
    - `is_head_independent`: set it if no parameter or rule depends on the head.
    - `is_translation_invariant`: set it if only differences of queries and keys matter.

    Attributes:
        needs_equal_widths: queries and keys must have one width. Default: False.
        is_head_independent: any subset of heads, in any order, gets the same scores, so that a
            backend may score heads one by one. Default: False, which is always safe.
        is_translation_invariant: score(q + c, k + c) = score(q, k), so that a backend may shift
            both to the centre of the keys before it calls `fold`, which expands the square of a
            distance: its key bias is minus half the scaled square of the key. Default: False.

    Example:
        >>> class Manhattan(Score):
        ...     needs_equal_widths = True
        ...     def forward(self, queries, keys):
        ...         return -torch.cdist(queries, keys, p=1)
        >>> from regard.attention import attend
        >>> attend(torch.randn(2, 5, 12), score=Manhattan()).shape
        torch.Size([2, 5, 12])
    """

    needs_equal_widths: bool = False
    is_head_independent: bool = False
    is_translation_invariant: bool = False

    @property
    def widths(self) -> tuple[int, int] | None:
        """The widths of queries and keys that the parameters were made for; None accepts any."""
        return None

    def forward(self, queries: Queries, keys: Keys) -> Scores:
        """Score every query against every key."""
        raise NotImplementedError(f"{type(self).__name__} must implement forward(queries, keys)")

    @property
    def is_dot_product(self) -> bool:
        """Whether `fold` may be called: True if the subclass implements it."""
        return type(self).fold is not Score.fold

    def fold(self, queries: Queries, keys: Keys) -> DotProductForm:
        """Return queries and keys whose dot product has the same softmax as the score.

        Queries and keys come in the caller's dtype; `upcast` what is computed from them.

        Raises:
            RegardError: if the score is not a dot product, as `is_dot_product` says.
        """
        raise RegardError(f"{self.display_name} does not fold into a dot product")

    def project_queries(self, queries: Tensor) -> Tensor:
        """Return what `pairwise` compares instead of the queries; here, the queries."""
        return queries

    def project_keys(self, keys: Tensor) -> Tensor:
        """Return what `pairwise` compares instead of the keys; here, the keys."""
        return keys

    @property
    def pairwise(self) -> "Score":
        """The score of projected queries and keys; here, the score itself."""
        return self

    @property
    def may_need_grad(self) -> bool:
        """Whether the score may hold tensors that require a gradient."""
        return any(parameter.requires_grad for parameter in self.parameters())

    @property
    def may_use_rng(self) -> bool:
        """Whether calling the score may draw random numbers, as dropout does while training."""
        return self.training

    @property
    def display_name(self) -> str:
        """The name of the score in error messages."""
        return type(self).__name__


class FunctionScore(Score):
    """Any callable as a score, with the defaults of `Score`.

    Nothing is known about a plain function, so it is assumed to need gradients and to draw random
    numbers. For a module that is no `Score`, its parameters and its training mode decide.

    Args:
        function: (queries, keys) -> scores.

    Example:
        >>> score = FunctionScore(lambda queries, keys: queries @ keys.mT)
        >>> score.is_dot_product  # nothing is known about the function
        False
    """

    def __init__(self, function: ScoreFunction) -> None:
        super().__init__()
        self.function = function

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Call the function."""
        return self.function(queries, keys)

    @property
    def may_need_grad(self) -> bool:
        """Whether the module has such parameters; True for a plain function."""
        return not isinstance(self.function, nn.Module) or super().may_need_grad

    @property
    def may_use_rng(self) -> bool:
        """Whether the module is training; True for a plain function."""
        return not isinstance(self.function, nn.Module) or self.function.training

    @property
    def display_name(self) -> str:
        """The name of the function or of the module's class."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def extra_repr(self) -> str:
        """Show the name of a plain function; a module shows itself."""
        return "" if isinstance(self.function, nn.Module) else self.display_name


def as_score(score: Score | ScoreFunction) -> Score:
    """Return a `Score` as it is, and any other callable as a `FunctionScore`.

    Args:
        score: a `Score`, another module, or a function (queries, keys) -> scores.

    Raises:
        TypeError: if `score` is a class, or cannot be called.

    Example:
        >>> as_score(torch.cdist)
        FunctionScore(cdist)
    """
    if isinstance(score, Score):
        return score
    if isinstance(score, type):
        raise TypeError(
            f"score must be a module, but it is the class {score.__name__}; pass an instance, "
            f"{score.__name__}(...)"
        )
    if not callable(score):
        raise TypeError(
            "score must be a name, a Score or a function of queries and keys, but it is a "
            f"{type(score).__name__}"
        )
    return FunctionScore(score)


class PositiveParameter(nn.Module):
    """A number above zero, fixed or learnable: a temperature or a bandwidth.

    What is learned is its logarithm, so that no gradient step can make it negative.

    Args:
        initial: its value, or the value at which learning starts.
        learnable: whether it is a parameter.
        name: what to call it in an error message.
    """

    def __init__(self, initial: float, learnable: bool = False, name: str = "value") -> None:
        super().__init__()
        if not 0 < initial < math.inf:
            raise RegardError(
                f"{name} must be finite and above 0, but it is {initial}; 1.0 is the default"
            )
        self.initial = float(initial)
        self.log = nn.Parameter(torch.tensor(math.log(initial))) if learnable else None

    @property
    def learnable(self) -> bool:
        """Whether the number is a parameter."""
        return self.log is not None

    @property
    def value(self) -> Tensor:
        """The current value, a tensor without axes."""
        if self.log is not None:
            return upcast(self.log).exp()
        # without axes, a tensor does not promote those that it is combined with, and one on the CPU
        # combines with those of any device
        return torch.tensor(self.initial, dtype=torch.float64, device="cpu")

    @property
    def operand(self) -> Tensor | float:
        """The current value to compute with: a tensor if it is learnable, else a float.

        A float combines with tensors of any device; some devices have no float64.
        """
        return self.value if self.learnable else self.initial

    def extra_repr(self) -> str:
        """Show the value and whether it is learnable."""
        return f"{self.value.item():.4g}, learnable={self.learnable}"
