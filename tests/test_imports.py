"""Imports between packages flow one way: text, data, models, weights, pictures, commands."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "regard"

# each package, with the packages it may import from besides itself
MAY_IMPORT = {
    "errors": set(),
    "shapes": set(),
    "config": {"errors"},
    "_support": {"errors"},
    "presets": {"_support", "errors"},
    "masks": {"errors", "shapes"},
    "positions": {"_support", "errors", "shapes"},
    "attention": {"_support", "errors", "masks", "positions", "shapes"},
    "data": {"_support", "config", "errors"},
    "models": {"_support", "attention", "config", "data", "errors", "masks", "positions"},
    "decoding": {"_support", "config", "data", "errors", "models"},
    "trace": {"_support", "errors"},
    "analysis": {"_support", "errors", "trace"},
    "viz": {"_support", "errors", "trace"},
    "capture": {"_support", "attention", "errors", "masks", "shapes", "trace"},
    "runs": {"_support", "config", "data", "decoding", "errors", "models", "trace"},
    "evaluation": {
        "_support",
        "analysis",
        "config",
        "data",
        "decoding",
        "errors",
        "models",
        "runs",
        "trace",
    },
    "training": {
        "_support",
        "config",
        "data",
        "decoding",
        "errors",
        "evaluation",
        "models",
        "presets",
        "runs",
    },
}
EVERYTHING = {*MAY_IMPORT}
MAY_IMPORT |= {
    "demo": EVERYTHING,
    "explorer": EVERYTHING | {"demo"},
    "gallery": EVERYTHING | {"demo"},
    "cli": EVERYTHING | {"demo", "explorer", "gallery"},
}


def files_of(package):
    return [*SOURCE.glob(f"{package}.py"), *SOURCE.glob(f"{package}/**/*.py")]


def packages_imported_by(file):
    """Return the packages of regard that a file imports, anywhere in it."""
    imported = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "regard":
                names = [f"regard.{alias.name}" for alias in node.names if alias.name[0] != "_"]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        imported |= {name.split(".")[1] for name in names if name.startswith("regard.")}
    return imported


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_package_imports_only_what_lies_below_it(package):
    assert files_of(package)
    for file in files_of(package):
        assert packages_imported_by(file) - {package} <= MAY_IMPORT[package], file.name


def test_every_package_has_its_place_in_the_order():
    packages = {path.stem for path in SOURCE.iterdir() if path.suffix in ("", ".py")}
    assert packages - {"__init__", "__main__", "__pycache__"} == set(MAY_IMPORT)


def test_no_test_replaces_the_clock_of_the_whole_process():
    """A server of another test would sleep by it for hours; patch the clock of one module."""
    patched = re.compile(r"setattr\(\s*(\"time\.|time,|\w+\.time, )")
    for file in (ROOT / "tests").rglob("*.py"):
        assert not patched.search(file.read_text(encoding="utf-8")), file.name
