import ast
import subprocess
import sys
from pathlib import Path

import pytest

import regard


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_import_regard_imports_neither_torch_nor_its_own_rooms():
    found = python(
        "import sys, regard; print([m for m in sys.modules if m in ('torch', 'numpy', 'einops') "
        "or m.startswith('regard.')])"
    )
    assert found.stdout == "[]\n"


@pytest.mark.parametrize("name", sorted(regard._EXPORTS))
def test_every_public_name_is_the_one_of_its_home(name):
    home = __import__(regard._EXPORTS[name], fromlist=[name])
    assert getattr(regard, name) is getattr(home, name)


def test_every_public_room_is_found_without_importing_it_first():
    code = "import regard; print([getattr(regard, room).__name__ for room in regard._SUBPACKAGES])"
    assert python(code).stdout == f"{[f'regard.{room}' for room in regard._SUBPACKAGES]}\n"


def test_type_checkers_see_the_same_names_as_the_table():
    tree = ast.parse(Path(regard.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.asname: line.module for line in block.body for alias in line.names}
    assert seen == {**regard._EXPORTS, **dict.fromkeys(regard._SUBPACKAGES, "regard")}


def test_dir_names_what_is_public():
    assert {"attend", "masks", "MultiHeadAttention", "__version__"} <= set(dir(regard))
    assert len(dir(regard)) == len(set(dir(regard)))


def test_a_name_is_looked_up_only_once():
    assert python("import regard; regard.look; print('look' in vars(regard))").stdout == "True\n"


def test_an_unknown_name_offers_the_nearest():
    found = python("import regard; regard.atend")
    assert "module 'regard' has no attribute 'atend'. Did you mean: 'attend'?" in found.stderr
