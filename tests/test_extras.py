"""Without an optional dependency, whatever needs it names the extra in one line."""

import importlib
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

import regard
from regard._support.extras import PACKAGES
from regard.cli import app
from regard.errors import RegardError
from regard.trace import build_translation_trace

ROOT = Path(__file__).parents[1]
PYPROJECT = ROOT / "pyproject.toml"
BLOCK_EXTRAS = f"""
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {sorted(set().union(*PACKAGES.values()))}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
"""


@pytest.fixture
def uninstall(monkeypatch):
    """Return a function that makes the imports of a package fail."""

    def block(package):
        for name in list(sys.modules):
            if name.partition(".")[0] == package:
                monkeypatch.setitem(sys.modules, name, None)
            elif name.startswith(
                (
                    "regard.explorer",
                    "regard.gallery.",
                    "regard.serving",
                    "regard.web",
                    "regard.viz.widget",
                )
            ):
                monkeypatch.delitem(sys.modules, name)  # it may have imported the package before
        monkeypatch.setitem(sys.modules, package, None)
        monkeypatch.delitem(vars(regard), "explorer", raising=False)

    return block


def message(package, extra):
    return rf"[^\n]* needs? {package}, which is not installed: pip install 'regard\[{extra}\]'"


def trace():
    return build_translation_trace(["the", "cat"], ["chat"], cross=[[[[0.25, 0.75]]]])


def import_explorer():
    importlib.import_module("regard.explorer")


def import_serving():
    importlib.import_module("regard.serving")


FUNCTIONS = {
    ("matplotlib", "pictures"): [
        lambda: regard.viz.plot_heatmap([[0.5, 0.5]], ["a"], ["b", "c"]),
        lambda: regard.viz.plot_all_heads(trace()),
        lambda: trace().plot(),
    ],
    ("anywidget", "notebook"): [lambda: regard.viz.AttentionWidget(trace())],
    ("anyio", "explorer"): [import_explorer],
    ("fastapi", "explorer"): [import_explorer],
    ("starlette", "explorer"): [import_explorer],
    ("uvicorn", "explorer"): [import_explorer],
    ("prometheus_client", "serve"): [import_serving],
}


@pytest.mark.parametrize(("package", "extra"), FUNCTIONS)
def test_function_names_the_extra_that_it_needs(package, extra, uninstall):
    uninstall(package)
    for function in FUNCTIONS[package, extra]:
        with pytest.raises(RegardError, match=f"^{message(package, extra)}$"):
            function()


@pytest.mark.parametrize(
    ("package", "extra", "command"),
    [
        ("matplotlib", "gallery", ["gallery"]),
        ("pygments", "gallery", ["gallery"]),
        ("sklearn", "gallery", ["gallery"]),
        ("fastapi", "explorer", ["explore"]),
        ("uvicorn", "explorer", ["explore"]),
        ("prometheus_client", "serve", ["serve", "demo-model"]),
        ("transformers", "hf", ["look", "--hf", "gpt2", "a cat"]),
        ("matplotlib", "pictures", ["look", "RUN", "the cat", "--png", "cat.png"]),
    ],
)
def test_command_names_the_extra_in_one_line(
    package, extra, command, uninstall, tiny_run, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    uninstall(package)
    result = CliRunner().invoke(app, [str(tiny_run) if word == "RUN" else word for word in command])
    assert result.exit_code == 1, result.output
    assert re.fullmatch(f"regard: {message(package, extra)}\n", result.stderr)


def test_words_without_matplotlib_prints_everything_and_how_to_get_the_picture(uninstall, tmp_path):
    with_picture = CliRunner().invoke(app, ["words", "--out", str(tmp_path / "words.svg")])
    uninstall("matplotlib")
    result = CliRunner().invoke(app, ["words", "--out", str(tmp_path / "none.svg")])
    assert result.exit_code == 0, result.output
    (wrote,) = re.findall("Wrote .*", with_picture.stdout)
    (advice,) = re.findall("No picture was saved: .*", result.stdout)
    assert re.search(message("matplotlib", "pictures"), advice)
    assert result.stdout.replace(advice, wrote) == with_picture.stdout
    assert not (tmp_path / "none.svg").exists()


def test_extras_are_those_of_the_package():
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    assert set(PACKAGES) == set(extras) - {"bench", "dev", "docs"}


def test_workflow_imports_every_module_without_extras():
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    (script,) = re.findall(r"<<'PYTHON'\n(.*?)\n *PYTHON\n", workflow, flags=re.DOTALL)
    code = BLOCK_EXTRAS + textwrap.dedent(script)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {"regard.runs.run", "regard.viz.page"} <= set(done.stdout.split())
