"""A trace in a notebook: the page in a frame of its own, or a terminal picture."""

from dataclasses import dataclass
from html import escape

from regard.trace import Trace
from regard.viz.page import render_page
from regard.viz.text import render_head

HEIGHT = 640  # pixels


@dataclass(frozen=True, slots=True, eq=False)
class TraceView:
    """One head of a trace, to be shown by whatever asks for it."""

    trace: Trace
    kind: str | None = None
    layer: int = 0
    head: int | None = None
    height: int = HEIGHT

    def _repr_html_(self) -> str:
        """Give the page in a frame that can reach neither the notebook nor the network."""
        text = render_page(self.trace, self.kind, self.layer, self.head)
        return (
            f'<iframe sandbox="allow-scripts allow-downloads" srcdoc="{escape(text)}" '
            f'style="width: 100%; height: {self.height}px; border: 0; border-radius: 8px" '
            f'title="regard" loading="lazy"></iframe>'
        )

    def __repr__(self) -> str:
        return render_head(self.trace, self.kind, self.layer, self.head)


def show(
    trace: Trace,
    kind: str | None = None,
    layer: int = 0,
    head: int | None = None,
    height: int = HEIGHT,
) -> TraceView:
    """Show a trace in a notebook, or as text; it opens at the given head."""
    shown = TraceView(trace, kind, layer, head, height)
    render_head(trace, kind, layer, head)  # refuses now what is not there, not when it is shown
    return shown
