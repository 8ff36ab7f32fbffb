"""Figures from a trace: one head, the heads of a layer, layers × heads, three attentions."""

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError
from regard.trace import Trace
from regard.viz.columns import columns, cut
from regard.viz.fonts import font_families
from regard.viz.grid import grid, safe
from regard.viz.heatmap import new_figure, outline_cells, plot_heatmap, set_titles
from regard.viz.view import View, caption, stack, stacks, view

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

ACROSS = 4  # heads of a layer side by side
# inches
WORD = 0.18  # from one word of 8 points to the next
LETTER = 0.07  # width of a letter of 8 points
PANEL = (1.4, 4.2)  # least and greatest side of a map among several
THUMBNAIL = (0.45, 1.3)  # and on a sheet of layers and heads
LONGEST_WORD = 12  # columns
SHEET = 16.0  # width to which a sheet's maps shrink

MARKED = "outlined: gold alignment"


def plot_head(
    trace: Trace,
    kind: str | None = None,
    layer: int = 0,
    head: int | None = None,
    *,
    top: float | None = None,
) -> "matplotlib.figure.Figure":
    """Draw one head, with its words and numbers."""
    seen = view(trace, kind, layer, head)
    return plot_heatmap(
        seen.rows,
        seen.queries,
        seen.keys,
        title=trace.title,
        top=top,
        caption=_noted(seen.caption, [seen]),
        marked=seen.gold,
    )


def plot_layer(
    trace: Trace, kind: str | None = None, layer: int = 0, *, top: float | None = None
) -> "matplotlib.figure.Figure":
    """Draw all heads of one layer, in reading order."""
    chosen = stack(trace, kind)
    first = view(trace, chosen.name, layer)  # refuses a layer that is not there
    look = chosen.maps[layer]
    views = [view(trace, chosen.name, layer, head) for head in look.heads]
    rows = [views[n : n + ACROSS] for n in range(0, len(views), ACROSS)]
    names = [f"head {head}" for head in look.heads]
    place = range(len(chosen.maps))[layer]
    said = caption(trace, chosen.name, place)
    return _panels(trace, rows, names, _noted(said, [first]), _side(views, PANEL), True, top)


def plot_all_heads(
    trace: Trace, kind: str | None = None, *, top: float | None = None
) -> "matplotlib.figure.Figure":
    """Draw all layers and heads of one attention, a row per layer, without words."""
    chosen = stack(trace, kind)
    rows, names = [], []
    for layer, look in enumerate(chosen.maps):
        rows.append([view(trace, chosen.name, layer, head) for head in look.heads])
        names += [f"{layer}.{head}" for head in look.heads]
    most = max(map(len, rows))
    side = min(THUMBNAIL[1], max(THUMBNAIL[0], SHEET / most))
    said = f"{caption(trace, chosen.name)}: layer.head"
    return _panels(trace, rows, names, said, side, False, top)


def plot_translation(
    trace: Trace, layer: int = 0, head: int | None = None, *, top: float | None = None
) -> "matplotlib.figure.Figure":
    """Draw the attentions of a translator side by side: encoder, decoder and cross."""
    views = [view(trace, one.name, layer, head) for one in stacks(trace)[:3]]
    if not views:
        raise RegardError("the trace holds no looks, so there is nothing to draw")
    names = [seen.caption.removeprefix(f"{trace.model} · ") for seen in views]
    said = _noted(trace.model, views)
    return _panels(trace, [views], names, said, _side(views, PANEL), True, top)


def _noted(said: str, views: Sequence[View]) -> str:
    marked = any(seen.gold for seen in views)
    return f"{said} ({MARKED})".strip() if marked else said


def _side(views: Sequence[View], limits: tuple[float, float]) -> float:
    longest = max(max(len(seen.queries), len(seen.keys)) for seen in views)
    return min(max(WORD * longest, limits[0]), limits[1])


def _panels(
    trace: Trace,
    rows: Sequence[Sequence[View]],
    names: Sequence[str],
    said: str,
    side: float,
    worded: bool,
    top: float | None,
) -> "matplotlib.figure.Figure":
    """Draw maps in rows, all on one colour scale."""
    across = max(map(len, rows))
    longest = max(
        columns(word) for row in rows for seen in row for word in seen.queries + seen.keys
    )
    words = LETTER * min(longest, LONGEST_WORD) if worded else 0.0
    figure = new_figure(
        1.2 + across * (side + words + 0.15), 1.0 + len(rows) * (side + words + 0.3)
    )
    panels = figure.subplots(len(rows), across, squeeze=False)
    remaining = iter(names)
    image: Any = None
    for row, places in zip(rows, panels, strict=True):
        for n, axes in enumerate(places):
            if n >= len(row):
                axes.set_axis_off()
                continue
            image = _draw(axes, row[n], next(remaining), side if worded else 0.0, top)
    scale = figure.colorbar(image, ax=panels, label="weight", fraction=0.05, shrink=0.8, aspect=30)
    scale.outline.set_visible(False)
    set_titles(figure, trace.title, said)
    return figure


def _draw(
    axes: "matplotlib.axes.Axes", seen: View, name: str, side: float, top: float | None
) -> Any:
    chart = grid(seen.rows, seen.queries, seen.keys, top)
    image = axes.imshow(chart.rows, cmap="cividis", vmin=0.0, vmax=chart.top)
    axes.set_title(safe(name), fontsize="small", parse_math=False, fontfamily=font_families())
    axes.tick_params(length=0, labelsize=8)
    if not side:
        axes.set(xticks=[], yticks=[])
        return image
    style: dict[str, Any] = {"parse_math": False, "fontfamily": font_families()}
    every = ceil(WORD * max(len(chart.queries), len(chart.keys)) / side)
    for words, ticks in ((chart.queries, axes.set_yticks), (chart.keys, axes.set_xticks)):
        turn: dict[str, Any] = {"rotation": 90} if ticks == axes.set_xticks else {}
        shown = [cut(word, LONGEST_WORD) for word in words[::every]]
        ticks(range(0, len(words), every), shown, **style, **turn)
    if every == 1:
        outline_cells(axes, chart, seen.gold)
    return image
