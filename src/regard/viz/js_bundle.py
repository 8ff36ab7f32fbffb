"""ES modules put into one script, so that a page needs no other file."""

import json
import re
from pathlib import Path

_IMPORT = re.compile(r'^import (\{[^}]*\}|\* as \w+) from "\./([\w/]+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?:async )?(?:function|class|const|let) (\w+)", re.MULTILINE)


def bundle(folder: Path, entry: str) -> str:
    """Join a module and all it imports; `entry` is its name without ".js".

    Each module becomes a function that gives its exports, called once, after those it imports.
    Modules import each other by name from the same folder, and export what they declare.
    """
    written: dict[str, str] = {}
    _write(folder, entry, written, ())
    return "\n".join(['"use strict";', *written.values()])


def name_of(module: str) -> str:
    """Give the variable that holds a module's exports."""
    return f"module_{module.replace('/', '_')}"


def _write(folder: Path, module: str, written: dict[str, str], above: tuple[str, ...]) -> None:
    if module in above:
        raise ValueError(f"modules must not import in a circle: {' > '.join((*above, module))}")
    if module in written:
        return
    text = (folder / f"{module}.js").read_text("utf-8")
    for found in _IMPORT.finditer(text):
        _write(folder, found[2], written, (*above, module))
    body = _EXPORT.sub(lambda found: found[0].removeprefix("export "), _IMPORT.sub(_taken, text))
    left = re.search(r"^(?:import|export)\b.*", body, re.MULTILINE)
    if left:
        raise ValueError(f"{module}.js must import and export by name, not as {left[0]!r}")
    exports = ", ".join(found[1] for found in _EXPORT.finditer(text))
    written[module] = f"const {name_of(module)} = (() => {{\n{body}return {{ {exports} }};\n}})();"


def _taken(found: re.Match[str]) -> str:
    names, module = found[1], name_of(found[2])
    if names.startswith("*"):
        return f"const {names.removeprefix('* as ')} = {module};\n"
    return f"const {re.sub(r' as ', ': ', names)} = {module};\n"


def embedded(data: object) -> str:
    r"""Write JSON that can stand within a script: `<` as \u003c, so that nothing ends it."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
