"""Neuron view: the dimensions of a query and its keys whose products add up to scores."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from regard._support.text import escape_control
from regard.errors import RegardError
from regard.trace import Array
from regard.viz.fonts import font_families
from regard.viz.heatmap import CHARACTER_INCHES, MAX_LABEL_COLUMNS, new_figure, set_titles
from regard.viz.text_layout import truncate

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

MAX_KEYS = 16  # that are drawn if none are named
ROW_INCHES, MATRIX_INCHES, BARS_INCHES = 0.28, 3.6, 1.1
DIVERGING = "PuOr_r"  # as in maps of heads: purple below 0, orange above
BAR_COLOUR = "#0072b2"


@runtime_checkable
class RecordWithVectors(Protocol):
    """What the neuron view reads of a `regard.CapturedAttention`."""

    name: str
    heads: Any  # indices of the heads whose weights were kept

    @property
    def vectors(self) -> Any:
        """The queries and keys, with their scale; None if they were not kept."""
        ...

    @property
    def weights(self) -> Any:
        """The weights (batch, head, query, key); None if they were summarized."""
        ...


def plot_neuron_view(
    record: RecordWithVectors,
    head: int = 0,
    query: int = -1,
    keys: int | Sequence[int] | None = None,
    *,
    batch_index: int = 0,
    tokens: Sequence[str] | None = None,
    key_tokens: Sequence[str] | None = None,
    title: str | None = None,
) -> "matplotlib.figure.Figure":
    """Plot the queries and keys behind attention weights, dimension by dimension.

    For one query, a row for each key: the key's vector, its element-wise product with the query
    times the scale of the score, the sum of these products, which is the score before masks and
    biases, and the weight that it became (the "neuron view" of BertViz, Vig 2019).

    Args:
        record: of `regard.watch(model, keep_vectors=True)`, such as `capture[0]`.
        head: index of the head.
        query: position of the query; negative ones count from the end.
        keys: positions of the keys; by default the 16 with the largest weights.
        batch_index: which item of the batch.
        tokens: labels of the positions of the queries, and of the keys; numbers by default.
        key_tokens: labels of the keys, if they are of another text (cross-attention).
        title: text above the figure; by default the module, the head and the query.

    Returns:
        A figure, which a notebook displays and `savefig` writes.

    Raises:
        RegardError: if the vectors were not kept, or there is no such head, query or key.

    Example:
        >>> import torch, regard
        >>> model = regard.MultiHeadAttention(12, heads=3)
        >>> with torch.no_grad(), regard.watch(model, keep_vectors=True) as capture:
        ...     context = model(torch.randn(1, 3, 12))
        >>> figure = plot_neuron_view(capture[0], head=1, query=2, tokens=["the", "old", "cat"])
        >>> [title for axes in figure.axes if (title := axes.get_title())]
        ['query: cat', 'keys', 'query × key × 0.5', 'sum: score', 'weight']
    """
    vectors = record.vectors
    if vectors is None:
        raise RegardError(
            f"the queries and keys of {record.name} are not known: keep them by "
            "regard.watch(model, keep_vectors=True); attention whose scores are no dot product, or "
            "that a model writes out in a way that was not followed, has none"
        )
    query = query + vectors.queries.shape[2] if query < 0 else query
    num_keys = vectors.keys.shape[2]
    pairs = [vectors.pair(batch_index, head, query, key) for key in range(num_keys)]
    query_vector = _to_array(pairs[0][0])
    key_vectors = np.stack([_to_array(key) for _, key in pairs])
    products = query_vector * key_vectors * vectors.scale
    weights = _weights_of(record, batch_index, head, query, num_keys)
    chosen = _choose_keys(keys, products.sum(1) if weights is None else weights)
    key_labels = _labels(tokens if key_tokens is None else key_tokens, num_keys, "key")
    query_label = _labels(tokens, vectors.queries.shape[2], "query")[query]
    return _plot(
        query_vector,
        key_vectors[chosen],
        products[chosen],
        None if weights is None else weights[chosen],
        [key_labels[n] for n in chosen],
        query_label,
        f"{vectors.scale:.3g}",
        f"{record.name} · head {head} · query {query_label}" if title is None else title,
    )


def _to_array(vector: Any) -> Array:
    return np.asarray(vector.detach().cpu().double().numpy())


def _weights_of(
    record: RecordWithVectors, batch: int, head: int, query: int, num_keys: int
) -> Array | None:
    """Return the weights of a query, (key,); None if they were not kept."""
    weights = record.weights
    if weights is None or head not in record.heads or weights.shape[3] > num_keys:
        return None
    row = _to_array(weights[batch, list(record.heads).index(head), query])
    return np.pad(row, (0, num_keys - len(row)))  # a static cache has keys that are not filled


def _choose_keys(keys: int | Sequence[int] | None, sizes: Array) -> list[int]:
    """Return the positions of the keys to draw, by default those of the largest sizes."""
    if keys is None:
        largest = np.argsort(-sizes, kind="stable")[:MAX_KEYS]
        return sorted(int(n) for n in largest)
    chosen = [keys] if isinstance(keys, int) else list(keys)
    if not chosen or not all(0 <= n < len(sizes) for n in chosen):
        raise RegardError(f"keys must be positions from 0 to {len(sizes) - 1}, but are {chosen}")
    return chosen


def _labels(tokens: Sequence[str] | None, count: int, axis: str) -> list[str]:
    if tokens is None:
        return [str(n) for n in range(count)]
    if len(tokens) != count:
        raise RegardError(f"there are {count} positions of {axis}, but {len(tokens)} tokens")
    return [truncate(escape_control(token), MAX_LABEL_COLUMNS) for token in tokens]


def _plot(
    query: Array,
    keys: Array,
    products: Array,
    weights: Array | None,
    key_labels: list[str],
    query_label: str,
    scale: str,
    title: str,
) -> "matplotlib.figure.Figure":
    num_bars = 1 if weights is None else 2
    left = CHARACTER_INCHES * max(map(len, key_labels))
    widths = [MATRIX_INCHES, MATRIX_INCHES, *[BARS_INCHES] * num_bars]
    figure = new_figure(left + 0.8 + sum(widths), 2.3 + ROW_INCHES * (len(keys) + 1))
    grid = figure.add_gridspec(
        2, 2 + num_bars, width_ratios=widths, height_ratios=[1, max(len(keys), 1)]
    )
    limit = max(float(np.abs(query).max()), float(np.abs(keys).max())) or 1.0
    top = figure.add_subplot(grid[0, 0])
    _draw_matrix(top, query[None], [""], f"query: {query_label}", limit)
    below = figure.add_subplot(grid[1, 0])
    drawn = _draw_matrix(below, keys, key_labels, "keys", limit)
    figure.colorbar(drawn, ax=below, location="bottom", aspect=40, label="value")
    middle = figure.add_subplot(grid[1, 1])
    limit = float(np.abs(products).max()) or 1.0
    drawn = _draw_matrix(middle, products, [], f"query × key × {scale}", limit)
    figure.colorbar(drawn, ax=middle, location="bottom", aspect=40, label="product")
    _draw_bars(figure.add_subplot(grid[1, 2]), products.sum(1), "sum: score")
    if weights is not None:
        _draw_bars(figure.add_subplot(grid[1, 3]), weights, "weight")
    set_titles(figure, title, None)
    return figure


def _draw_matrix(
    axes: "matplotlib.axes.Axes", values: Array, labels: list[str], title: str, limit: float
) -> Any:
    """Draw a row for each vector, a column for each dimension."""
    style: dict[str, Any] = {"parse_math": False, "fontfamily": font_families()}
    image = axes.imshow(
        values, cmap=DIVERGING, vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest"
    )
    axes.set_title(title, fontsize="medium", **style)
    axes.set_yticks(range(len(labels)), labels, **style)
    step = max(1, -(-values.shape[1] // 8))
    axes.set_xticks(range(0, values.shape[1], step) if len(values) > 1 or labels != [""] else [])
    axes.tick_params(length=0)
    return image


def _draw_bars(axes: "matplotlib.axes.Axes", values: Array, title: str) -> None:
    """Draw a bar for each key, with its value."""
    rows = range(len(values))
    bars = axes.barh(rows, values, color=BAR_COLOUR, height=0.7)
    texts = [f"{value:.2f}".replace("-", "−") for value in values]
    axes.bar_label(bars, texts, padding=2, fontsize=8)
    axes.set_ylim(len(values) - 0.5, -0.5)
    axes.margins(x=0.45)
    axes.axvline(0, color="#8a919c", linewidth=0.8)
    axes.set(xticks=[], yticks=[])
    axes.set_title(title, fontsize="medium")
    axes.spines[:].set_visible(False)
