"""Traces in a notebook: the page in a sandboxed frame, or text where there is no HTML."""

from dataclasses import dataclass
from html import escape

from regard.trace import Trace
from regard.viz.page import render_page
from regard.viz.terminal import render_head

FRAME_HEIGHT_PIXELS = 640


@dataclass(frozen=True, slots=True, eq=False)
class TraceView:
    """A trace opened at one head, which a notebook shows as a page and a terminal as text."""

    trace: Trace
    kind: str | None = None
    layer: int = 0
    head: int | None = None
    height: int = FRAME_HEIGHT_PIXELS

    def _repr_html_(self) -> str:
        """Return the page in a frame that can reach neither the notebook nor the network."""
        page = render_page(self.trace, self.kind, self.layer, self.head)
        return (
            f'<iframe sandbox="allow-scripts allow-downloads" srcdoc="{escape(page)}" '
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
    height: int = FRAME_HEIGHT_PIXELS,
) -> TraceView:
    """Show a trace: an interactive page in a notebook, text elsewhere.

    Args:
        trace: the trace.
        kind: "encoder", "decoder", "cross", …; by default cross-attention, else the first.
        layer: layer within that attention; -1 is the last.
        head: index of a head; by default the first.
        height: height of the notebook's frame in pixels.

    Raises:
        RegardError: if there is no such head.
    """
    view = TraceView(trace, kind, layer, head, height)
    render_head(trace, kind, layer, head)  # raise now, not when the notebook displays it
    return view
