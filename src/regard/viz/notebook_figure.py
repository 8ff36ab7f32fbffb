"""A matplotlib figure that a notebook shows as a picture.

A figure that was made without pyplot has no picture of its own there, unless `%matplotlib inline`
was called before. Importing this module needs matplotlib, so figures import it when they are drawn.
"""

from io import BytesIO
from typing import Any
from warnings import catch_warnings, filterwarnings

from regard._support.extras import needs_extra

with needs_extra("pictures", "figures need"):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

DOTS_PER_INCH = 100


class NotebookFigure(Figure):
    """A figure without a window, whose value at the end of a cell is a picture."""

    def __init__(self, width: float, height: float) -> None:
        super().__init__(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(self)

    def savefig(self, fname: Any, **options: Any) -> None:
        """Save the figure with all of its labels: unless told otherwise, its size follows them."""
        super().savefig(fname, **({"bbox_inches": "tight"} | options))

    def _repr_png_(self) -> bytes:
        picture = BytesIO()
        with catch_warnings():
            filterwarnings("ignore", "Glyph .* missing from", UserWarning)
            self.savefig(picture, format="png", dpi=DOTS_PER_INCH)
        return picture.getvalue()
