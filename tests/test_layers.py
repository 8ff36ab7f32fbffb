"""The map: imports flow one way, and every source file has a test of the same name."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "regard"

# what the rooms need that show how a trained model works
SHOWN = {
    "attention",
    "batch",
    "errors",
    "lesson",
    "masks",
    "models",
    "pictures",
    "positions",
    "retrace",
    "run",
    "text",
    "tokens",
    "trace",
    "training",
    "translate",
}

MAY_IMPORT = {
    "shapes": set(),
    "transforms": set(),
    "errors": set(),
    "masks": {"masks", "errors", "shapes"},
    "positions": {"errors", "shapes", "transforms"},
    "attention": {"attention", "positions", "masks", "errors", "shapes", "transforms"},
    "tokens": set(),
    "files": {"errors"},
    "counting": set(),
    "config": {"errors"},
    "presets": {"files", "errors"},
    "text": {"text", "config", "counting", "files", "errors"},
    "batch": {"text", "tokens"},
    "models": {"models", "config", "tokens", "attention", "positions", "masks", "errors"},
    "ranking": set(),
    "hunt": {"models", "ranking", "tokens"},
    "search": {"config", "hunt", "models", "ranking"},
    "parallel": set(),
    "groups": set(),
    "store": {"files", "errors"},
    "run": {"config", "errors", "files", "models", "store", "text"},
    "translate": {
        "batch",
        "config",
        "counting",
        "errors",
        "models",
        "groups",
        "parallel",
        "search",
        "text",
    },
    "stream": {"errors"},
    "training": {
        "training",
        "batch",
        "config",
        "counting",
        "errors",
        "files",
        "models",
        "run",
        "store",
        "text",
        "tokens",
        "translate",
    },
    "trace": {"trace", "errors"},
    "watching": {"watching", "trace", "attention", "masks", "errors", "shapes", "transforms"},
    "insight": {"insight", "trace", "errors"},
    "retrace": {"batch", "files", "models", "run", "text", "tokens", "trace", "translate"},
    "score": {
        "config",
        "counting",
        "errors",
        "insight",
        "models",
        "retrace",
        "run",
        "text",
        "training",
        "translate",
    },
    "pictures": {"pictures", "trace", "errors"},
    "five_words": {"attention", "masks", "pictures", "errors"},
    "gaze": {"errors", "pictures", "retrace", "run", "trace", "translate", "watching"},
    "lesson": {"errors", "retrace", "run", "text", "training"},
    "demo": {
        "errors",
        "insight",
        "lesson",
        "pictures",
        "retrace",
        "run",
        "text",
        "trace",
        "training",
        "translate",
    },
    "explorer": {"explorer", *SHOWN},
    "gallery": {"gallery", "files", "five_words", "insight", *SHOWN},
    "one_line": {"errors"},
    "cli": {
        "config",
        "counting",
        "demo",
        "errors",
        "explorer",
        "five_words",
        "files",
        "gallery",
        "gaze",
        "one_line",
        "presets",
        "retrace",
        "run",
        "score",
        "stream",
        "text",
        "training",
        "translate",
    },
}


def files_of(room):
    return [*SOURCE.glob(f"{room}.py"), *SOURCE.glob(f"{room}/**/*.py")]


def rooms_imported_by(file):
    """Name the rooms of this package that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "regard":
                names = [f"regard.{alias.name}" for alias in node.names if alias.name[0] != "_"]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("regard.")}
    return found


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_imports_only_from_earlier_rooms(room):
    assert files_of(room)
    for file in files_of(room):
        assert rooms_imported_by(file) <= MAY_IMPORT[room], file.name


def test_every_room_is_on_the_list():
    rooms = {path.stem for path in SOURCE.iterdir() if path.suffix in ("", ".py")}
    assert rooms - {"__init__", "__main__", "__pycache__"} == set(MAY_IMPORT)


def test_every_source_file_has_a_test():
    for file in SOURCE.rglob("*.py"):
        if file.stem.startswith("__"):
            continue
        test = ROOT / "tests" / file.relative_to(SOURCE).with_name(f"test_{file.name}")
        assert test.exists(), f"{file.relative_to(ROOT)} has no {test.relative_to(ROOT)}"


def test_every_source_file_says_in_one_line_what_it_holds():
    for file in SOURCE.rglob("*.py"):
        docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        assert docstring.splitlines()[:1], f"{file.name} has no docstring"
        assert docstring.splitlines()[0].endswith("."), f"{file.name}: {docstring.splitlines()[0]}"


def test_no_test_changes_the_clock_of_everyone():
    """A server of other tests would sleep by it, for hours; the clock of one module will do."""
    everyone = re.compile(r"setattr\(\s*(\"time\.|time,|\w+\.time, )")
    for file in (ROOT / "tests").rglob("*.py"):
        assert not everyone.search(file.read_text(encoding="utf-8")), file.name
