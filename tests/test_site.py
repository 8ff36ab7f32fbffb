"""The site has an entry for every public name, builds without warnings and works offline."""

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

import regard

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "regard"
PAGES = sorted(page for page in (DOCS / "api").glob("*.md") if page.name != "index.md")
# `command-line.md` has the commands; the gallery is a command, too
WITHOUT_PAGE = {"_support", "cli", "gallery"}


def public_names(module):
    """Return the `__all__` of a module's source, which may need packages that are not installed."""
    path = SOURCE.joinpath(*module.split(".")[1:])
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    (names,) = re.findall(r"^__all__ = (\[.*?\])$", file.read_text(), re.DOTALL | re.MULTILINE)
    return ast.literal_eval(names)


def documented_names(page):
    """Return the names of all `public-names` directives of a page, by module."""
    names: dict[str, list[str]] = {}
    blocks = re.findall(r"```\{public-names\} (\S+)\n(.*?)```", page.read_text(), re.DOTALL)
    for module, lines in blocks:
        names.setdefault(module, []).extend(lines.split())
    return names


def test_every_package_has_a_page():
    packages = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()}
    public = {name for name in packages if not name.startswith("__")} - WITHOUT_PAGE
    assert {page.stem for page in PAGES} == public
    toctree = re.findall(
        r"```\{toctree\}\n:maxdepth: 1\n(.*?)```", (DOCS / "api/index.md").read_text(), re.DOTALL
    )
    assert sorted(toctree[0].split()) == sorted(public)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_public_name_of_a_package_has_one_entry(page):
    names = documented_names(page)
    assert f"regard.{page.stem}" in names
    for module, documented in names.items():
        assert Counter(documented) == Counter(public_names(module)), module


def test_every_name_of_regard_is_in_the_index():
    tables = re.findall(
        r"   :nosignatures:\n\n(.*?)```", (DOCS / "api/index.md").read_text(), re.DOTALL
    )
    listed = [name for table in tables for name in table.split()]
    packages = {page.stem for page in PAGES}
    assert Counter(listed) == Counter({*regard.__all__} - packages - {"__version__"})


class Page(HTMLParser):
    """The anchors of a page, its links, and what it loads."""

    def __init__(self, file):
        super().__init__()
        self.anchors, self.links, self.loaded = {""}, set(), set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.anchors.add(attributes.get("id", ""))
        if tag == "a":
            self.links.add(attributes.get("href", ""))
        elif tag in ("script", "img", "link", "iframe"):
            self.loaded.add(attributes.get("src") or attributes.get("href") or "")


@pytest.mark.docs
def test_site_builds_without_warnings_and_all_its_links_lead_somewhere(tmp_path):
    for package in ("sphinx", "furo", "myst_parser"):
        pytest.importorskip(package, reason="the extra docs is not installed")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going"]
    command += ["-d", str(tmp_path / "doctrees"), str(DOCS), str(tmp_path / "site")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    site = tmp_path / "site"
    pages = {file.resolve(): Page(file) for file in site.rglob("*.html")}
    broken = [
        f"{file.relative_to(site)}: {link}"
        for file, page in pages.items()
        for link in page.links
        if not is_found(file, link, pages)
    ]
    assert not broken
    loaded = {url for page in pages.values() for url in page.loaded}
    assert not [url for url in loaded if re.match(r"(\w+:)?//", url)]  # it works without a network
    check_entries(site)


def is_found(file, link, pages):
    """Return whether a link of a page leads to a file and, in a page of the site, an anchor."""
    if re.match(r"[a-z]+:", link):
        return True
    path, _, anchor = unquote(link).partition("#")
    target = (file.parent / path).resolve() if path else file
    return target.is_file() and (target not in pages or anchor in pages[target].anchors)


def check_entries(site):
    """Assert that `regard.watch` and all others have an entry, and that entries have a text."""
    from sphinx.util.inventory import InventoryFile

    content = (site / "objects.inv").read_bytes()
    inventory = InventoryFile.loads(content, uri="").data
    objects = {name for kind, names in inventory.items() if kind[:3] == "py:" for name in names}
    faces = {f"regard.{page.stem}": public_names(f"regard.{page.stem}") for page in PAGES}
    faces["regard"] = [name for name in regard.__all__ if name != "__version__"]
    assert not {f"{face}.{name}" for face, names in faces.items() for name in names} - objects
    for file in (site / "api").glob("*.html"):
        assert not re.findall(
            r'id="([^"]+)">(?:(?!<dd|<dt).)*</dt>\s*<dd></dd>', file.read_text(), re.S
        )
