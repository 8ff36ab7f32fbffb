"""Visualisation of attention: text for a terminal, figures, an interactive page, a notebook view.

Functions named `render_*` return text or HTML, functions named `plot_*` a matplotlib figure. All of
them read a `Trace` (or one plain matrix) and know no model. `selected_head.py` picks a head of a
trace as a `LabelledMatrix`, which `terminal.py`, `half_blocks.py`, `heatmap.py` and `figures.py`
draw. `head_map.py` draws one number per head, layers × heads, `image_overlay.py` a head over an
image, and `neuron_view.py` the queries and keys behind weights, of a captured record. `page.py`
puts the trace and the JavaScript modules of `static/` into one HTML file, with `js_bundle.py` and
`document.py`, which `regard.browser` uses, too; the explorer serves the same modules. `notebook.py`
has `show`, and `widget.py` the live view of a notebook, an anywidget of the same modules.
Matplotlib and anywidget are imported only when they are used.
"""

from typing import Any

from regard.viz.colour import contrast_colour
from regard.viz.detokenize import display_tokens
from regard.viz.document import render_document
from regard.viz.figures import plot_all_heads, plot_head, plot_layer, plot_translation
from regard.viz.fonts import font_families, missing_glyphs
from regard.viz.half_blocks import render_half_blocks
from regard.viz.head_map import plot_head_map, plot_head_map_difference
from regard.viz.heatmap import (
    add_axis_titles,
    new_figure,
    outline_cells,
    plot_heatmap,
    save_figure,
    set_titles,
)
from regard.viz.image_overlay import plot_over_image
from regard.viz.js_bundle import bundle_modules, module_variable
from regard.viz.matrix import (
    QUERY_KEY,
    WRITING_READING,
    LabelledMatrix,
    label_matrix,
)
from regard.viz.neuron_view import plot_neuron_view
from regard.viz.notebook import TraceView, show
from regard.viz.page import STATIC_FOLDER, page_payload, render_page, save_page
from regard.viz.selected_head import describe_head, find_group, resolve_head
from regard.viz.terminal import render_head, render_heatmap, render_links, render_strongest
from regard.viz.text_layout import side_by_side
from regard.viz.thumbnails import render_all_heads

__all__ = [
    "QUERY_KEY",
    "STATIC_FOLDER",
    "WRITING_READING",
    "AttentionWidget",
    "LabelledMatrix",
    "TraceView",
    "add_axis_titles",
    "bundle_modules",
    "contrast_colour",
    "describe_head",
    "display_tokens",
    "find_group",
    "font_families",
    "label_matrix",
    "missing_glyphs",
    "module_variable",
    "new_figure",
    "outline_cells",
    "page_payload",
    "plot_all_heads",
    "plot_head",
    "plot_head_map",
    "plot_head_map_difference",
    "plot_heatmap",
    "plot_layer",
    "plot_neuron_view",
    "plot_over_image",
    "plot_translation",
    "render_all_heads",
    "render_document",
    "render_half_blocks",
    "render_head",
    "render_heatmap",
    "render_links",
    "render_page",
    "render_strongest",
    "resolve_head",
    "save_figure",
    "save_page",
    "set_titles",
    "show",
    "side_by_side",
]


def __getattr__(name: str) -> Any:
    if name == "AttentionWidget":  # needs anywidget
        from regard.viz.widget import AttentionWidget

        return AttentionWidget
    raise AttributeError(f"module 'regard.viz' has no attribute {name!r}")
