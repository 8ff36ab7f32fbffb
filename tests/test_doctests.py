"""The examples in docstrings run and print what they show."""

import doctest
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import regard
from regard import analysis, trace, viz
from regard.evaluation import EvaluationReport
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


def documented_functions():
    """Yield the functions that users call first, by name: of `regard`, traces and pictures."""
    pictures = [name for name in viz.__all__ if name.startswith(("plot_", "render_", "save_"))]
    for package, names in (
        (regard, regard.__all__),
        (analysis, analysis.__all__),
        (viz, [*pictures, "AttentionWidget", "show"]),
    ):
        for name in names:
            member = getattr(package, name)
            if inspect.isfunction(member) or name == "AttentionWidget":
                yield f"{package.__name__}.{name}", member
    for owner in (trace.Trace, regard.Run, EvaluationReport):
        for name, member in inspect.getmembers(owner, inspect.isroutine):
            if not name.startswith("_") and name != "translation_options":  # of the commands
                yield f"{owner.__name__}.{name}", member


@pytest.mark.parametrize(
    "function", [pytest.param(f, id=name) for name, f in documented_functions()]
)
def test_public_function_has_an_example(function):
    assert "\nExample:\n    >>> " in inspect.getdoc(function)
