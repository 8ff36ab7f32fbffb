"""HTML documents in one file: scripts and styles inline, and a policy that allows only them."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from regard.viz.js_bundle import escape_json


def render_document(
    title: str,
    body: str,
    *,
    scripts: Sequence[str],
    style: str,
    data: Mapping[str, Any],
    policy: str = "",
) -> str:
    """Return an HTML document whose Content-Security-Policy forbids connections and other scripts.

    Args:
        title: the title, as text.
        body: markup before the data and the scripts; it must be trusted.
        scripts: the scripts, each in an element of its own, in this order.
        style: the style sheet.
        data: what the scripts read, by the id of its element: text, or data for JSON.
        policy: further directives, such as "worker-src blob:".

    Returns:
        The document.

    Example:
        >>> page = render_document("a title", "<p></p>", scripts=["go();"], style="", data={})
        >>> "script-src 'sha256-" in page
        True
    """
    hashes = " ".join(f"'{_hash(script)}'" for script in scripts)
    directives = [
        "default-src 'none'",
        f"script-src {hashes}",
        f"style-src '{_hash(style)}'",
        "img-src data: blob:",
        *([policy] if policy else []),
        "base-uri 'none'",
        "form-action 'none'",
    ]
    elements = [_data_element(name, content) for name, content in data.items()]
    elements += [f"<script>{script}</script>" for script in scripts]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{"; ".join(directives)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n"
        f"<style>{style}</style>\n</head>\n<body>\n{body}\n"
        + "".join(f"{element}\n" for element in elements)
        + "</body>\n</html>\n"
    )


def _data_element(name: str, content: Any) -> str:
    """Return a script element that no browser runs: its type is not that of a script."""
    if isinstance(content, str):
        return f'<script type="text/plain" id="{name}">{content}</script>'
    return f'<script type="application/json" id="{name}">{escape_json(content)}</script>'


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
