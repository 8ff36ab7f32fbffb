"""How autodoc reads the docstrings of regard.

Fields of dataclasses are documented by the comments beside them, constants by a docstring in the
module that defines them.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from importlib import import_module
from typing import Any

from sphinx.application import Sphinx
from sphinx.domains.python import PyObject
from sphinx.pycode import ModuleAnalyzer


def fields_of(cls: type) -> list[str]:
    """Return the names of the fields of a dataclass or NamedTuple."""
    if is_dataclass(cls):
        return [name for name in cls.__dataclass_fields__ if not name.startswith("_")]
    return list(getattr(cls, "_fields", ()))


def field_comments(cls: type) -> Iterator[str]:
    """Yield `name: comment` of the fields that have a comment beside them in the source."""
    for name in fields_of(cls):
        pattern = rf"^    {name}: [^\n]*?  # ([^\n]+)$"
        if match := re.search(pattern, inspect.getsource(cls), re.MULTILINE):
            yield f"    {name}: {match[1]}"


def add_field_comments(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Add the section `Attributes` to a class that documents its fields by comments."""
    if what != "class" or not lines or {"Attributes:", "Args:"} & set(lines):
        return
    if comments := list(field_comments(obj)):
        others = [n for n, line in enumerate(lines) if line in {"Raises:", "Example:"}]
        start = min([*others, len(lines)])
        lines[start:start] = ["", "Attributes:", *comments, ""]


def add_data_docstring(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Take the docstring of a constant from the module that defines it, not from its type."""
    if what != "data":
        return
    package, _, constant = name.rpartition(".")
    docs = ModuleAnalyzer.for_module(defining_module(package, constant)).find_attr_docs()
    lines[:] = docs.get(("", constant), []) + [line for line in lines if "alias of" in line]


def rejoin_first_sentence(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Undo what napoleon does to a colon in a property or constant: text before it is no type."""
    types = [line for line in lines if line.startswith(":type: ")]
    if what in {"attribute", "property", "data"} and types:
        lines.remove(types[0])
        lines[0] = f"{types[0].removeprefix(':type: ')}: {lines[0]}"


def defining_module(package: str, name: str) -> str:
    """Return the module from which a package imports a name, or the package itself."""
    for node in ast.walk(ast.parse(inspect.getsource(import_module(package)))):
        if not isinstance(node, ast.ImportFrom) or node.module == package:
            continue
        if name in {alias.name for alias in node.names}:
            return defining_module(str(node.module), name)
    return package


def shorten_signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returned: str
) -> tuple[str | None, str | None]:
    """Write the long type of arrays as `Array`, its name in the source."""
    array = r"~?numpy\.ndarray\[tuple\[~?typing\.Any, \.{3}\], ~?numpy\.dtype\[~?typing\.Any\]\]"
    parts = (part and re.sub(array, "~regard.trace.Array", part) for part in (signature, returned))
    return next(parts), next(parts)


def skip_fields(
    app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out the entries of NamedTuple's fields: the class lists them."""
    return True if type(obj).__name__ == "_tuplegetter" else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the handlers; napoleon's has priority 500."""
    for field in PyObject.doc_field_types:
        if field.name == "variable":
            field.label = "Attributes"
    app.connect("autodoc-process-docstring", add_field_comments, priority=400)
    app.connect("autodoc-process-docstring", add_data_docstring, priority=400)
    app.connect("autodoc-process-docstring", rejoin_first_sentence, priority=600)
    app.connect("autodoc-process-signature", shorten_signature)
    app.connect("autodoc-skip-member", skip_fields)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
