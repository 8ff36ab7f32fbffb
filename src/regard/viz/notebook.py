"""Traces in a notebook: a live widget, or the page in a frame; and `show`, which else prints."""

import sys
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError
from regard.trace import Rows, Trace
from regard.viz.page import NOTEBOOK_HEIGHT_PIXELS, render_page
from regard.viz.selected_head import label_head
from regard.viz.terminal import render_head

if TYPE_CHECKING:
    from regard.capture import Capture
    from regard.runs import Run


@dataclass(frozen=True, slots=True, eq=False)
class TraceView:
    """A trace opened at one head, which a notebook shows as a page and a terminal as text."""

    trace: Trace
    kind: str | None = None
    layer: int | None = None
    head: int | None = None
    height: int = NOTEBOOK_HEIGHT_PIXELS
    rows: Rows = "output"

    def _repr_html_(self) -> str:
        """Return the page in a frame that can reach neither the notebook nor the network."""
        page = render_page(self.trace, self.kind, self.layer, self.head, rows=self.rows)
        return (
            f'<iframe sandbox="allow-scripts allow-downloads" srcdoc="{escape(page)}" '
            f'style="width: 100%; height: {self.height}px; border: 0; border-radius: 8px" '
            f'title="regard" loading="lazy"></iframe>'
        )

    def __repr__(self) -> str:
        return render_head(self.trace, self.kind, self.layer, self.head, rows=self.rows)


def show(
    subject: "Trace | Capture | Run",
    text: str | None = None,
    *,
    kind: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    rows: Rows = "output",
    height: int = NOTEBOOK_HEIGHT_PIXELS,
) -> None:
    """Show where a model attended: an interactive view in a notebook, printed text elsewhere.

    Args:
        subject: a trace; a `Capture`, as `regard.watch` returns; or a `Run`, with a text.
        text: the sentence that a run translates.
        kind: "encoder", "decoder", "cross", …; by default cross-attention, else the first.
        layer: layer within that attention; -1 is the last. By default that of the head.
        head: index of a head; by default the one that `analysis.select_head` selects.
        rows: "output" names rows of a decoder's cross-attention by the word written there, "input"
            by the word read there.
        height: height of the view in a notebook, in pixels.

    Raises:
        RegardError: if there is no such head, nothing was captured, a run comes without a text or
            anything else with one, or the subject is none of these.

    Example:
        >>> from regard.trace import build_translation_trace
        >>> show(build_translation_trace(["the", "cat"], ["chat"], cross=[[[[0.25, 0.75]]]]))
        Cross-attention · layer 0, head 0
        <BLANKLINE>
        writing ↓  reading →
                the      cat
        chat  0.25 ::  0.75 xx
        <BLANKLINE>
             0 [ .:-=+*x#@] 1
    """
    trace = _to_trace(subject, text)
    if in_notebook():
        from IPython.display import display

        display(_view(trace, kind, layer, head, rows, height))
    else:
        print(render_head(trace, kind, layer, head, rows=rows))


def _view(
    trace: Trace, kind: str | None, layer: int | None, head: int | None, rows: Rows, height: int
) -> Any:
    """Return a live widget, or without anywidget the page in a frame."""
    label_head(trace, kind, layer, head, rows=rows)  # raise here, not while it is displayed
    if find_spec("anywidget") is None:
        _mention_widget()
        return TraceView(trace, kind, layer, head, height, rows)
    from regard.viz.widget import AttentionWidget

    return AttentionWidget(trace, kind, layer, head, rows=rows, height=height)


@cache
def _mention_widget() -> None:
    """Say once how to get the widget."""
    print("pip install 'regard[notebook]' for a view that Python can read and change")


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook; IPython in a terminal has none."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def _to_trace(subject: "Trace | Capture | Run", text: str | None) -> Trace:
    if isinstance(subject, Trace) and text is None:
        return subject
    from regard.capture import Capture
    from regard.runs import Run

    if isinstance(subject, Run):
        if text is None:
            raise RegardError('show needs a sentence for a run: show(run, "The cat sits.")')
        return subject.trace(text)
    if isinstance(subject, (Trace, Capture)) and text is not None:
        raise RegardError("text is for a run; a trace or a capture has a text of its own")
    if isinstance(subject, Capture):
        return subject.trace()
    raise RegardError(
        f"show needs a Trace, a Capture, or a Run and a sentence, but got {type(subject).__name__}"
    )
