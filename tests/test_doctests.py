"""The examples in docstrings run and print what they show."""

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

from regard.runs import load

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
MODULES = [
    ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for file in sorted(SOURCE.rglob("*.py"))
    if ">>> " in file.read_text(encoding="utf-8")
]


def needs_run(module):
    """Return whether examples use `run`, a small trained run, without making one."""
    text = Path(module.__file__).read_text(encoding="utf-8")
    return re.search(r">>> .*\brun\.", text) is not None


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name, request, tmp_path, monkeypatch):
    module = import_module(name)
    names = {}
    if needs_run(module):
        names["run"] = load(request.getfixturevalue("tiny_run"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    result = doctest.testmod(module, extraglobs=names, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0 and result.failed == 0
