"""A trace as one HTML page that needs no network, for any browser."""

import base64
import hashlib
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.trace import AttentionMap, Trace, quantize, summarize
from regard.viz.grid import safe
from regard.viz.js_bundle import bundle, embedded, name_of
from regard.viz.view import stack, view

STATIC_FOLDER = Path(__file__).parent / "static"  # the modules; a server may hand out the same

EXACT = 250_000  # so many weights are kept to 16 bits: under 1 MB of text
WHOLE = 2_500_000  # and so many whole, to 8 bits: under 3.5 MB; more are reduced

# what the page draws of a reduced look, in bits; the rest stays in the trace
_DRAWN = {"top_keys": 32, "top_weights": 8, "remainder": 8, "tiles": 8}


def render_page(
    trace: Trace, kind: str | None = None, layer: int = 0, head: int | None = None
) -> str:
    """Write a page that opens at the given head; its weights are rounded to fit into it.

    The page forbids itself every connection (Content-Security-Policy).
    """
    chosen = stack(trace, kind)
    view(trace, chosen.name, layer, head)  # refuses what is not there
    place = range(len(chosen.maps))[layer]
    start = {"kind": chosen.name, "layer": place, "head": head}
    script = (
        f"{bundle(STATIC_FOLDER, 'viewer')}\n"
        "const readJson = (id) => JSON.parse(document.getElementById(id).textContent);\n"
        f'{name_of("viewer")}.openViewer(document.getElementById("viewer"), readJson("trace"), '
        '{ viewState: readJson("view-state") });\n'
    )
    style = (STATIC_FOLDER / "viewer.css").read_text("utf-8")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(safe(trace.title or trace.model or 'regard'))}</title>\n"
        f"<style>{style}</style>\n</head>\n<body>\n"
        '<div id="viewer"></div>\n'
        f'<script type="application/json" id="trace">{embedded(page_payload(trace))}</script>\n'
        f'<script type="application/json" id="view-state">{embedded(start)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def save_page(
    trace: Trace,
    path: Path | str,
    kind: str | None = None,
    layer: int = 0,
    head: int | None = None,
) -> None:
    """Write a page to a file."""
    text = render_page(trace, kind, layer, head)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise RegardError(f"cannot write {path}: {error.strerror}") from error


def page_payload(trace: Trace) -> dict[str, Any]:
    """Give the trace as its JSON, with as many weights and bits as a page can carry."""
    count = sum(look.weights.size for look in trace.maps if look.weights is not None)
    if count > WHOLE:
        trace = summarize(trace)
    record: dict[str, Any] = replace(trace, maps=()).to_dict()
    bits = 16 if count <= EXACT else 8
    record["maps"] = [_look(look, bits) for look in trace.maps]
    return record


def _look(look: AttentionMap, bits: int) -> dict[str, Any]:
    names = ("name", "kind", "queries", "keys", "call", "call_site", "heads", "shape")
    record: dict[str, Any] = {name: getattr(look, name) for name in names}
    if look.weights is not None:
        return record | {"weights": quantize(look.weights, bits)}
    drawn = {name: quantize(getattr(look.summary, name), bits) for name, bits in _DRAWN.items()}
    return record | {"summary": drawn}


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
