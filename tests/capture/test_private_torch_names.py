"""The table of private torch names in `regard.capture` is complete, and torch still has them."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest
import torch
from torch import nn
from torch._higher_order_ops.flex_attention import flex_attention
from torch.nn.functional import multi_head_attention_forward

import regard.capture
from regard.capture.calls import FlexCall

FOLDER = Path(regard.capture.__file__).parent
FILE = re.compile(r"    ((?:\.\./_support/|\w+/)?\w+\.py)")
NAME = re.compile(r"      (torch(?:\.\w+)+)\b")


def read_table():
    """Return the (name, file) pairs of the table in the package's docstring."""
    file, pairs = None, set()
    for line in regard.capture.__doc__.splitlines():
        if match := FILE.fullmatch(line):
            file = match[1]
        elif match := NAME.match(line):
            pairs.add((match[1], file))
    return pairs


TABLE = read_table()

# private names that belong to Python: frames and named tuples
NOT_OF_TORCH = {"_getframe", "_replace", "_asdict", "_fields"}


def is_private(name):
    return re.fullmatch(r"_[A-Za-z]\w*", name) is not None


def private_imports(node):
    """Return the imported names that are private, or come from a private module of torch."""
    if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("torch"):
        return set()
    from_private = any(is_private(part) for part in node.module.split("."))
    return {alias.name for alias in node.names if from_private or is_private(alias.name)}


def private_names_in(path):
    """Return the private names in a file that are not its own: imports, attributes, strings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names, own = set(), set(NOT_OF_TORCH)
    for node in ast.walk(tree):
        names |= private_imports(node)
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            is_self = isinstance(node.value, ast.Name) and node.value.id in ("self", "other")
            (own if is_self else names).add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names |= {node.value} if is_private(node.value) else set()
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            own.add(node.name)
    return names - own - {"_C"}  # what is taken from torch._C counts


def files():
    return [*FOLDER.rglob("*.py"), FOLDER.parent / "_support" / "torch_modes.py"]


def test_table_lists_exactly_the_private_names_in_use():
    used = set()
    for path in files():
        inside = path.is_relative_to(FOLDER)
        file = str(path.relative_to(FOLDER)) if inside else f"../_support/{path.name}"
        used |= {(name, file) for name in private_names_in(path)}
    assert used == {(name.split(".")[-1], file) for name, file in TABLE}


def resolve(name):
    """Import the longest module of a dotted name, and read the rest as attributes."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:n]))
        except ImportError:
            continue
        for part in parts[n:]:
            value = getattr(value, part)
        return value
    raise ImportError(name)


# set in __init__, so that the classes do not have them
INSTANCE_ATTRIBUTES = {"_buffers", "_modules", "_orig_mod", "_parameters"}


@pytest.mark.parametrize("name", sorted({name for name, _ in TABLE}))
def test_installed_torch_has_the_private_name(name):
    owner, _, attribute = name.rpartition(".")
    if attribute in INSTANCE_ATTRIBUTES:
        compiled = torch.compile(nn.Linear(1, 1), backend="eager")
        assert isinstance(compiled, resolve(owner)) and hasattr(compiled, attribute)
    else:
        assert resolve(name) is not None


def test_twin_of_multi_head_attention_forward_can_be_made():
    assert "has_torch_function" in multi_head_attention_forward.__code__.co_names
    parameters = inspect.signature(multi_head_attention_forward).parameters
    assert {"num_heads", "bias_k", "add_zero_attn"} <= set(parameters)


def test_flex_attention_operator_passes_the_arguments_of_flex_call():
    passed = list(inspect.signature(flex_attention.__call__).parameters)
    assert len(passed) == 9
    assert passed[3:] == list(inspect.signature(FlexCall).parameters)[3:]
