"""Imports between packages flow one way: text, data, models, weights, pictures, commands."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "regard"

# each package, with the packages it may import from besides itself
MAY_IMPORT = {
    "errors": {"_support"},  # only text.py, which imports nothing
    "shapes": set(),
    "config": {"_support", "errors"},
    "_support": {"errors"},
    "presets": {"_support", "errors"},
    "web": {"_support", "errors"},
    "masks": {"_support", "errors", "shapes"},
    "positions": {"_support", "errors", "shapes"},
    "attention": {"_support", "errors", "masks", "positions", "shapes"},
    "data": {"_support", "config", "errors"},
    "models": {"_support", "attention", "config", "data", "errors", "masks", "positions"},
    "decoding": {
        "_support",
        "attention",
        "config",
        "data",
        "errors",
        "masks",
        "models",
        "positions",
    },
    "browser": {
        "_support",
        "attention",
        "config",
        "data",
        "errors",
        "models",
        "positions",
        "trace",
        "viz",
    },
    "trace": {"_support", "errors"},
    "analysis": {"_support", "capture", "errors", "interventions", "trace"},
    "viz": {"_support", "analysis", "errors", "trace"},
    "capture": {"_support", "attention", "errors", "masks", "shapes", "trace"},
    "interventions": {"_support", "attention", "capture", "errors", "trace"},
    "evaluation": {"analysis", "data", "errors", "models"},
    "runs": {
        "_support",
        "analysis",
        "config",
        "data",
        "decoding",
        "errors",
        "evaluation",
        "models",
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
    "serving": EVERYTHING,
    "gallery": EVERYTHING | {"demo"},
    "cli": EVERYTHING | {"demo", "explorer", "gallery", "serving"},
}

# what functions may import besides, when they are called: convenience methods on lower layers
MAY_IMPORT_LAZILY = {
    "analysis": {"viz"},
    "runs": {"browser"},
    "trace": {"viz"},
    "viz": {"capture", "runs"},
}


def files_of(package):
    return [*SOURCE.glob(f"{package}.py"), *SOURCE.glob(f"{package}/**/*.py")]


def is_type_checking(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def nodes_run_on_import(tree):
    """Return the nodes outside functions, and outside blocks for type checkers."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_type_checking(
            node
        ):
            yield node
            yield from nodes_run_on_import(node)


def packages_imported_by(nodes):
    """Return the packages of regard that some nodes import."""
    imported = set()
    for node in nodes:
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
    below = MAY_IMPORT[package] | {package}
    for file in files_of(package):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        assert packages_imported_by(nodes_run_on_import(tree)) <= below, file.name
        lazily = MAY_IMPORT_LAZILY.get(package, set())
        assert packages_imported_by(ast.walk(tree)) <= below | lazily, file.name


# packages that are built on the files of another one, not on its face alone
MAY_IMPORT_FILES = {
    ("interventions", "capture"),  # EditMode extends AttentionMode
    ("capture", "attention"),  # RegardCall runs a backend on some rows
    ("capture", "trace"),  # block_summary needs torch, which the face does not import
    ("cli", "training"),  # distributed alone: the face would import all of training
    ("cli", "gallery"),  # site needs the extra `gallery`, which the face does not import
}


def modules_imported_by(package):
    """Yield the modules of other packages, not packages, that a package imports names from."""
    for file in files_of(package):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            parts = node.module.split(".") if isinstance(node, ast.ImportFrom) else []
            if parts[:1] != ["regard"] or parts[1:2] in (["_support"], [package]):
                continue
            if len(parts) > 2 and SOURCE.joinpath(*parts[1:]).with_suffix(".py").is_file():
                yield parts[1], f"{file.name} imports {node.module}"


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_package_imports_others_by_their_faces(package):
    inner = [
        text
        for other, text in modules_imported_by(package)
        if (package, other) not in MAY_IMPORT_FILES
    ]
    assert not inner


def test_every_package_is_in_the_import_order():
    packages = {path.stem for path in SOURCE.iterdir() if path.suffix in ("", ".py")}
    assert packages - {"__init__", "__main__", "__pycache__"} == set(MAY_IMPORT)


def test_no_test_replaces_the_clock_of_the_whole_process():
    """A server of another test would sleep by it for hours; patch the clock of one module."""
    patched = re.compile(r"setattr\(\s*(\"time\.|time,|\w+\.time, )")
    for file in (ROOT / "tests").rglob("*.py"):
        assert not patched.search(file.read_text(encoding="utf-8")), file.name
