import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import regard


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_import_regard_is_lazy():
    result = python(
        "import sys, regard; print([m for m in sys.modules if m in ('torch', 'numpy', 'einops') "
        "or m.startswith('regard.')])"
    )
    assert result.stdout == "[]\n"


@pytest.mark.parametrize("name", sorted(regard._EXPORTS))
def test_public_name_resolves_to_its_package(name):
    home = __import__(regard._EXPORTS[name], fromlist=[name])
    assert getattr(regard, name) is getattr(home, name)


def test_packages_of_public_names_are_public():
    homes = {home.removeprefix("regard.") for home in regard._EXPORTS.values()}
    assert homes - {"errors"} <= set(regard._SUBPACKAGES)


def test_names_and_subpackages_resolve_without_import_and_names_once():
    once, packages = python(
        "import regard; regard.look; print('look' in vars(regard)); "
        "print([getattr(regard, p).__name__ for p in regard._SUBPACKAGES])"
    ).stdout.splitlines()
    assert once == "True"
    assert packages == str([f"regard.{p}" for p in regard._SUBPACKAGES])


def test_type_checking_imports_match_the_exports():
    tree = ast.parse(Path(regard.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {alias.asname: line.module for line in block.body for alias in line.names}
    assert imported == {**regard._EXPORTS, **dict.fromkeys(regard._SUBPACKAGES, "regard")}


def test_dir_lists_public_names():
    assert {"attend", "masks", "MultiHeadAttention", "__version__"} <= set(dir(regard))
    assert len(dir(regard)) == len(set(dir(regard)))


def test_unknown_name_raises_attribute_error():
    result = python("import regard; regard.atend")
    assert "module 'regard' has no attribute 'atend'. Did you mean: 'attend'?" in result.stderr


@pytest.mark.parametrize("name", sorted(regard._EXPORTS))
def test_public_name_has_an_example_and_its_arguments_documented(name):
    """Examples run as doctests; `look` and `weights` take the arguments of `attend`."""
    value = getattr(regard, name)
    text = inspect.getdoc(value)
    assert ">>> " in text
    if inspect.isfunction(value) and name not in ("look", "weights"):
        assert "Args:" in text and "Raises:" in text
        assert any(section in text for section in ("Returns:", "Yields:")) or name == "show"
