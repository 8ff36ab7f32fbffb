"""Files of the repository that are pages of the site, and links to them.

A page such as results.md includes bench/RESULTS.md. Links are written as GitHub reads them, from
the file that they are in; on the site they lead to the page.
"""

import os
import re
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
PAGES = {
    "bench/RESULTS.md": "docs/results.md",
    "CHANGELOG.md": "docs/changelog.md",
    "CONTRIBUTING.md": "docs/contributing.md",
    "SECURITY.md": "docs/security.md",
}
"""Each file that is included, and the page that includes it."""


def retarget(text: str, written_in: Path, page: Path) -> str:
    """Return Markdown whose links to files fit the page, not the file that it was written in."""

    def replace(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(written_in.parent / link[2]))
        if "://" in link[2] or not target.exists():
            return link[0]
        target = ROOT / PAGES.get(target.relative_to(ROOT).as_posix(), target)
        return f"{link[1]}{os.path.relpath(target, page.parent)}"

    return re.sub(r"(\]\()([^)#\s]+)", replace, text)


def read_page(app: Sphinx, docname: str, content: list[str]) -> None:
    """Retarget the links of a page to files that are included in other pages."""
    page = Path(app.env.doc2path(docname))
    content[0] = retarget(content[0], page, page)


def read_included(app: Sphinx, path: Path, docname: str, content: list[str]) -> None:
    """Retarget the links of a file that a page includes."""
    page = Path(app.env.doc2path(docname))
    content[0] = retarget(content[0], ROOT / os.path.relpath(page.parent / path, ROOT), page)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the handlers."""
    app.connect("source-read", read_page)
    app.connect("include-read", read_included)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
