import ast
import subprocess
import sys
from pathlib import Path

import pytest

import regard


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_import_regard_is_lazy():
    found = python(
        "import sys, regard; print([m for m in sys.modules if m in ('torch', 'numpy', 'einops') "
        "or m.startswith('regard.')])"
    )
    assert found.stdout == "[]\n"


@pytest.mark.parametrize("name", sorted(regard._EXPORTS))
def test_public_name_resolves_to_its_package(name):
    home = __import__(regard._EXPORTS[name], fromlist=[name])
    assert getattr(regard, name) is getattr(home, name)


def test_subpackages_resolve_without_import():
    code = "import regard; print([getattr(regard, p).__name__ for p in regard._SUBPACKAGES])"
    assert python(code).stdout == f"{[f'regard.{p}' for p in regard._SUBPACKAGES]}\n"


def test_type_checking_imports_match_the_exports():
    tree = ast.parse(Path(regard.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.asname: line.module for line in block.body for alias in line.names}
    assert seen == {**regard._EXPORTS, **dict.fromkeys(regard._SUBPACKAGES, "regard")}


def test_dir_lists_public_names():
    assert {"attend", "masks", "MultiHeadAttention", "__version__"} <= set(dir(regard))
    assert len(dir(regard)) == len(set(dir(regard)))


def test_public_name_is_resolved_once():
    assert python("import regard; regard.look; print('look' in vars(regard))").stdout == "True\n"


def test_unknown_name_raises_attribute_error():
    found = python("import regard; regard.atend")
    assert "module 'regard' has no attribute 'atend'. Did you mean: 'attend'?" in found.stderr
