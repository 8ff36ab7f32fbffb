"""A translator in one HTML file, which runs in the browser.

`page.py` has `describe_translator`, for which `architecture.py` describes the model, part by part,
and `parameters.py` stores its parameters, and `render_translator`, whose document holds them with
the JavaScript modules of `static/`, which tokenize, compute and search as `regard.data`,
`regard.models` and `regard.decoding` do, and with the viewer of `regard.viz`.
`regard.runs.export_html` writes the page of a run.
"""

from regard.browser.page import (
    STATIC_FOLDER,
    TranslatorData,
    describe_translator,
    render_translator,
)
from regard.browser.parameters import QUANTIZATIONS

__all__ = [
    "QUANTIZATIONS",
    "STATIC_FOLDER",
    "TranslatorData",
    "describe_translator",
    "render_translator",
]
