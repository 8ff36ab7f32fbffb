"""A trace as one self-contained HTML page: interactive, and without any network access."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from regard._support import files
from regard._support.text import escape_control
from regard.trace import AttentionMap, Rows, Trace, quantize, summarize
from regard.viz.document import render_document
from regard.viz.js_bundle import bundle_modules, module_variable
from regard.viz.selected_head import resolve_head, select_heads

STATIC_FOLDER = Path(__file__).parent / "static"
"""The folder of the viewer's JavaScript modules; the explorer serves them."""

NOTEBOOK_HEIGHT_PIXELS = 640  # of a view in the output of a cell

# Weights of a trace up to which they are stored in 16 bits (under 1 MB of JSON), and in full with 8
# bits (under 3.5 MB); beyond that, maps are summarized.
MAX_16_BIT_WEIGHTS = 250_000
MAX_FULL_WEIGHTS = 2_500_000

# Bits of the parts of a summary that the page draws; the others stay in the trace.
_DRAWN_SUMMARY_BITS = {"top_keys": 32, "top_weights": 8, "remainder": 8, "tiles": 8}


def render_page(
    trace: Trace,
    kind: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    *,
    rows: Rows = "output",
) -> str:
    """Return an HTML page that opens at a head; weights are rounded so that it stays small.

    Its Content-Security-Policy forbids all connections, and all scripts but its own.

    Args:
        trace: the trace.
        kind: "encoder", "decoder", "cross", …; by default cross-attention, else the first.
        layer: layer within that attention; -1 is the last. By default that of the head.
        head: index of a head; by default the one that `analysis.select_head` selects.
        rows: "output" names rows of a decoder's cross-attention by the word written there, "input"
            by the word read there.

    Returns:
        The page, one HTML document.

    Raises:
        RegardError: if there is no such head.

    Example:
        >>> from regard.trace import build_translation_trace
        >>> trace = build_translation_trace(["the", "cat"], ["chat"], cross=[[[[0.25, 0.75]]]])
        >>> render_page(trace).startswith("<!DOCTYPE html>")
        True
    """
    group, layer, head = resolve_head(trace, kind, layer, head)
    trace.row_tokens(group.maps[layer], rows)  # raises unless it is one of both
    view_state = {"kind": group.name, "layer": layer, "head": head, "rows": rows}
    script = (
        f"{bundle_modules(STATIC_FOLDER, 'viewer')}\n"
        "const readJson = (id) => JSON.parse(document.getElementById(id).textContent);\n"
        f'{module_variable("viewer")}.openViewer(document.getElementById("viewer"), '
        'readJson("trace"), { viewState: readJson("view-state") });\n'
    )
    title = escape_control(trace.title or trace.model or "regard")
    return render_document(
        title,
        '<div id="viewer"></div>',
        scripts=[script],
        style=(STATIC_FOLDER / "viewer.css").read_text("utf-8"),
        data={"trace": page_payload(trace), "view-state": view_state},
    )


def save_page(
    trace: Trace,
    path: Path | str,
    kind: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    *,
    rows: Rows = "output",
) -> None:
    """Write an interactive HTML page with every head, which works without a network.

    Args:
        trace: the trace.
        path: the file.
        kind: as for `render_page`.
        layer: as for `render_page`.
        head: as for `render_page`.
        rows: as for `render_page`.

    Raises:
        RegardError: if there is no such head, or writing fails.

    Example:
        >>> from regard.trace import build_translation_trace
        >>> trace = build_translation_trace(["the", "cat"], ["chat"], cross=[[[[0.25, 0.75]]]])
        >>> save_page(trace, "look.html")
        >>> Path("look.html").exists()
        True
    """
    page = render_page(trace, kind, layer, head, rows=rows)
    files.write_file(Path(path), page, make_folder=False)


def page_payload(trace: Trace) -> dict[str, Any]:
    """Return a trace as JSON-serializable data, with as many weights and bits as a page carries.

    The data also name the head that `analysis.select_head` selects in each kind of attention, at
    which a viewer opens by default.
    """
    selected = {"selected_heads": select_heads(trace)}
    count = sum(m.weights.size for m in trace.maps if m.weights is not None)
    if count > MAX_FULL_WEIGHTS:
        trace = summarize(trace)
    bits = 16 if count <= MAX_16_BIT_WEIGHTS else 8
    maps = [_map_payload(attention_map, bits) for attention_map in trace.maps]
    return replace(trace, maps=()).to_dict() | {"maps": maps} | selected


def _map_payload(attention_map: AttentionMap, bits: int) -> dict[str, Any]:
    names = ("name", "kind", "queries", "keys", "call", "call_site", "heads", "shape")
    payload: dict[str, Any] = {name: getattr(attention_map, name) for name in names}
    if attention_map.query_inputs is not None:
        payload["query_inputs"] = attention_map.query_inputs
    if attention_map.weights is not None:
        return payload | {"weights": quantize(attention_map.weights, bits)}
    summary = {
        part: quantize(getattr(attention_map.summary, part), part_bits)
        for part, part_bits in _DRAWN_SUMMARY_BITS.items()
    }
    return payload | {"summary": summary}
