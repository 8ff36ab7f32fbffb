"""A live view of a trace for notebooks: an anywidget whose traits select a head and a row.

Importing this module needs anywidget, so `regard.viz` imports it only when the widget is used.
"""

import re
from typing import Any

from regard._support.extras import needs_extra
from regard.errors import RegardError
from regard.trace import Rows, Trace
from regard.viz.js_bundle import bundle_modules, module_variable
from regard.viz.page import NOTEBOOK_HEIGHT_PIXELS, STATIC_FOLDER, page_payload
from regard.viz.selected_head import find_group, resolve_head, resolve_layer

with needs_extra("notebook", "AttentionWidget needs"):
    import anywidget
    import traitlets


def _module() -> str:
    """Return the viewer and its widget as one ES module that imports nothing."""
    script = bundle_modules(STATIC_FOLDER, "widget")
    return f"{script}\nexport default {{ render: {module_variable('widget')}.render }};\n"


def _style() -> str:
    """Return the viewer's style sheet, limited to widgets: a notebook has styles of its own."""
    style = (STATIC_FOLDER / "viewer.css").read_text("utf-8")
    style = re.sub(r"^html, body \{.*\}\n", "", style, flags=re.MULTILINE)
    style = re.sub(r"^( *)(?::root|body)\b", r"\1&", style, flags=re.MULTILINE)
    style = style.replace("@media (max-width: 720px)", "@container (max-width: 720px)")
    frame = (
        "container-type: inline-size; overflow: auto; "
        "border: 1px solid var(--border); border-radius: 8px;"
    )
    return f".regard-widget {{\n{frame}\n{style}}}\n"


class AttentionWidget(anywidget.AnyWidget):
    """A trace in a notebook: set the head that it shows, read the row that was clicked.

    Several widgets may be in one notebook. All scripts are part of the widget: it loads
    nothing from a network.

    Args:
        trace: the trace; setting the attribute shows another one.
        kind: "encoder", "decoder", "cross", …; by default cross-attention, else the first.
        layer: layer within that attention; -1 is the last. By default that of the head.
        head: index of a head; by default the one that `analysis.select_head` selects.
        rows: "output" names rows of a decoder's cross-attention by the word written there,
            "input" by the word read there.
        height: height in pixels.

    Attributes:
        locked_row: position of the row that was locked with a click, among the tokens of
            the queries; None if there is none. Setting it locks a row.
        locked_label: label of that row.

    Raises:
        RegardError: if there is no such head, also when a trait is set; or if anywidget is
            not installed.

    Example:
        >>> from regard.trace import build_translation_trace
        >>> heads = [[[0.25, 0.75]], [[0.5, 0.5]]]
        >>> trace = build_translation_trace(["the", "cat"], ["chat"], cross=[heads, heads])
        >>> widget = AttentionWidget(trace, kind="cross", layer=0, head=1)
        >>> widget.layer = 1  # changes what it shows
        >>> widget  # as the last line of a cell, displays it
        AttentionWidget(cross, layer 1, head 1)
        >>> widget.locked_row is None  # no row has been clicked
        True
    """

    _esm = _module()
    _css = _style()
    _payload = traitlets.Dict().tag(sync=True)
    kind = traitlets.Unicode().tag(sync=True)
    layer = traitlets.Int().tag(sync=True)
    head = traitlets.Int().tag(sync=True)
    rows = traitlets.Unicode("output").tag(sync=True)
    locked_row = traitlets.Int(None, allow_none=True).tag(sync=True)
    locked_label = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    height = traitlets.Int(NOTEBOOK_HEIGHT_PIXELS).tag(sync=True)

    def __init__(
        self,
        trace: Trace,
        kind: str | None = None,
        layer: int | None = None,
        head: int | None = None,
        *,
        rows: Rows = "output",
        height: int = NOTEBOOK_HEIGHT_PIXELS,
    ) -> None:
        group, layer, head = resolve_head(trace, kind, layer, head)
        self._trace = trace
        super().__init__(
            _payload=page_payload(trace),
            kind=group.name,
            layer=layer,
            head=head,
            rows=rows,
            height=height,
        )

    @property
    def trace(self) -> Trace:
        """The trace that is shown."""
        return self._trace

    @trace.setter
    def trace(self, trace: Trace) -> None:
        group, layer, head = resolve_head(trace)
        self._trace = trace
        with self.hold_sync(), self.hold_trait_notifications():
            self.locked_row = self.locked_label = None
            self._payload = page_payload(trace)
            self.kind, self.layer, self.head = group.name, layer, head

    def __repr__(self) -> str:
        return f"AttentionWidget({self.kind}, layer {self.layer}, head {self.head})"

    @traitlets.validate("kind")
    def _validate_kind(self, proposal: Any) -> str:
        return find_group(self._trace, proposal["value"]).name

    @traitlets.validate("layer")
    def _validate_layer(self, proposal: Any) -> int:
        return resolve_layer(find_group(self._trace, self.kind), proposal["value"])

    @traitlets.validate("head")
    def _validate_head(self, proposal: Any) -> int:
        return resolve_head(self._trace, self.kind, self.layer, proposal["value"])[2]

    @traitlets.validate("rows")
    def _validate_rows(self, proposal: Any) -> str:
        self._trace.row_tokens(self._trace.maps[0], proposal["value"])
        return str(proposal["value"])

    @traitlets.validate("locked_row")
    def _validate_row(self, proposal: Any) -> int | None:
        row: int | None = proposal["value"]
        queries = find_group(self._trace, self.kind).maps[self.layer].shape[1]
        if row is not None and not 0 <= row < queries:
            raise RegardError(
                f"locked_row must be None or from 0 to {queries - 1}, but it is {row}"
            )
        return row

    @traitlets.observe("kind", "layer")
    def _stay_in_range(self, change: Any) -> None:
        """Choose another layer or head where the new attention has no such one."""
        maps = find_group(self._trace, self.kind).maps
        self.layer = min(self.layer, len(maps) - 1)
        if self.head not in maps[self.layer].heads:
            self.head = maps[self.layer].heads[0]
        if change["name"] == "kind":
            self.locked_row = self.locked_label = None
