"""Visualisation of attention: text for a terminal, figures, an interactive page, a notebook view.

Functions named `render_*` return text or HTML, functions named `plot_*` a matplotlib figure. All of
them read a `Trace` (or one plain matrix) and know no model. `selection.py` picks a head of a trace
as a `LabelledMatrix`, which `terminal.py`, `half_blocks.py`, `heatmap.py` and `figures.py` draw.
`page.py` puts the trace and the JavaScript modules of `static/` into one HTML file; the explorer
serves the same modules. Matplotlib is imported only when a figure is made.
"""

from regard.viz.colour import contrast_colour
from regard.viz.detokenize import display_tokens
from regard.viz.figures import plot_all_heads, plot_head, plot_layer, plot_translation
from regard.viz.fonts import font_families, missing_glyphs
from regard.viz.half_blocks import render_half_blocks
from regard.viz.heatmap import (
    new_figure,
    outline_cells,
    plot_heatmap,
    save_figure,
    set_titles,
)
from regard.viz.matrix import LabelledMatrix, label_matrix
from regard.viz.notebook import TraceView, show
from regard.viz.page import STATIC_FOLDER, page_payload, render_page, save_page
from regard.viz.terminal import render_head, render_heatmap, render_links, render_strongest
from regard.viz.text_layout import side_by_side

__all__ = [
    "STATIC_FOLDER",
    "LabelledMatrix",
    "TraceView",
    "contrast_colour",
    "display_tokens",
    "font_families",
    "label_matrix",
    "missing_glyphs",
    "new_figure",
    "outline_cells",
    "page_payload",
    "plot_all_heads",
    "plot_head",
    "plot_heatmap",
    "plot_layer",
    "plot_translation",
    "render_half_blocks",
    "render_head",
    "render_heatmap",
    "render_links",
    "render_page",
    "render_strongest",
    "save_figure",
    "save_page",
    "set_titles",
    "show",
    "side_by_side",
]
