"""What measurements of effects return: values by head or by edge, with plots of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.errors import RegardError
from regard.trace import Array

if TYPE_CHECKING:
    import matplotlib.figure


@dataclass(frozen=True)
class HeadEffects:
    """A number for each head of each module.

    Attributes:
        modules: names, in the order in which they are called.
        values: (module, head); NaN where a module has fewer heads than others.
        label: what a value means.
    """

    modules: tuple[str, ...]
    values: Array
    label: str

    def ranking(self) -> list[tuple[str, int]]:
        """Return the heads (module, head), the largest value first."""
        order = np.argsort(-self.values, axis=None, kind="stable")
        cells = [divmod(int(n), self.values.shape[1]) for n in order]
        return [(self.modules[m], h) for m, h in cells if not np.isnan(self.values[m, h])]

    def plot(self, title: str = "") -> "matplotlib.figure.Figure":
        """Plot the values as a map of layers × heads."""
        from regard.viz import plot_head_map

        return plot_head_map(self.values, title=title, label=self.label, layers=self.modules)


@dataclass(frozen=True)
class HeadImportance:
    """The importance of heads, measured by ablation and estimated by gradients.

    Attributes:
        ablation: change of the metric when a head is ablated.
        gradient: mean of `|∂ metric / ∂ factor of the head|` (Michel et al. 2019).
    """

    ablation: HeadEffects
    gradient: HeadEffects

    @property
    def rank_correlation(self) -> float:
        """Spearman's rank correlation of the estimate and the size of the measured change.

        NaN if all heads have the same rank, as a single one has.
        """
        measured, estimated = np.abs(self.ablation.values).ravel(), self.gradient.values.ravel()
        is_head = ~np.isnan(measured)
        ranks = _ranks(measured[is_head]), _ranks(estimated[is_head])
        if any(np.ptp(x) == 0 for x in ranks):
            return float("nan")
        return float(np.corrcoef(*ranks)[0, 1])

    def plot(self, title: str = "") -> "matplotlib.figure.Figure":
        """Plot the measured importance as a map of layers × heads."""
        return self.ablation.plot(title)


@dataclass(frozen=True)
class KnockoutMatrix:
    """Change of a metric when the edge from a query to a key is removed, (query, key)."""

    queries: tuple[int, ...]
    keys: tuple[int, ...]
    values: Array

    def plot(
        self,
        title: str = "",
        *,
        tokens: Sequence[str] | None = None,
        key_tokens: Sequence[str] | None = None,
    ) -> "matplotlib.figure.Figure":
        """Plot the changes; colours diverge from 0.

        Args:
            title: text above the map.
            tokens: of all positions, to label queries and keys by; positions by default.
            key_tokens: those of the keys, if they are of another text (cross-attention).

        Raises:
            RegardError: if there are fewer tokens than positions.
        """
        from regard.viz import font_families, new_figure, set_titles

        figure = new_figure(2.0 + 0.4 * len(self.keys), 1.6 + 0.4 * len(self.queries))
        axes = figure.add_subplot()
        limit = float(np.abs(self.values).max()) or 1.0
        image = axes.imshow(self.values, cmap="PuOr_r", vmin=-limit, vmax=limit)
        style: dict[str, Any] = {"parse_math": False, "fontfamily": font_families()}
        columns = _labels(self.keys, tokens if key_tokens is None else key_tokens)
        axes.set_xticks(range(len(self.keys)), columns, **style)
        axes.set_yticks(range(len(self.queries)), _labels(self.queries, tokens), **style)
        axes.set(xlabel="key", ylabel="query")
        figure.colorbar(image, ax=axes, label="change of the metric")
        set_titles(figure, title, None)
        return figure


def _labels(positions: Sequence[int], tokens: Sequence[str] | None) -> list[str]:
    """Return the tokens at some positions, or the positions."""
    if tokens is None:
        return [str(n) for n in positions]
    if max(positions) >= len(tokens):
        raise RegardError(
            f"tokens must cover position {max(positions)}, but there are {len(tokens)}"
        )
    return [tokens[n] for n in positions]


def _ranks(values: Array) -> Array:
    """Return the rank of each value; equal ones share the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    return np.asarray((last - (counts - 1) / 2)[inverse])
