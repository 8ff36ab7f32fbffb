"""A bundler for the viewer's ES modules: one script, so that a page needs no other file.

A page opened from disk cannot import modules (browsers refuse file: imports), so they must be
inlined. esbuild would do that, but it is a native binary from npm, which users who write a page
from Python do not have, and shipping its output would put a build step between the modules and
their tests. The modules keep to named imports and exports, for which these lines suffice; anything
else raises an error.
"""

import json
import posixpath
import re
from pathlib import Path

from regard.errors import RegardError

_IMPORT = re.compile(
    r'^import (\{[^}]*\}|\* as \w+) from "(\.{1,2}/(?:\.\./)*[\w/]+)\.js";\n', re.MULTILINE
)
_UNSAFE_IN_SCRIPT = re.compile("[<\u2028\u2029\ud800-\udfff]")
_EXPORT = re.compile(r"^export (?:async )?(?:function|class|const|let) (\w+)", re.MULTILINE)


def bundle_modules(folder: Path, entry: str) -> str:
    """Bundle a module and all it imports into one script.

    Each module becomes a function that returns its exports, called once, after those it imports.

    Args:
        folder: where the entry module is; modules import each other by relative paths.
        entry: name of the entry module, without ".js".

    Raises:
        ValueError: if imports are circular, or not of the form that is supported.
    """
    bundled: dict[str, str] = {}
    _bundle(folder, entry, bundled, ())
    return "\n".join(['"use strict";', *bundled.values()])


def module_variable(module: str) -> str:
    """Return the name of the variable that holds a module's exports."""
    return re.sub(r"\W+", "_", f"module_{module}")


def escape_json(data: object) -> str:
    r"""Return JSON for a script element of a page.

    `<` becomes \u003c, so that nothing can end the element, and lone surrogates, which UTF-8 cannot
    encode, become escape sequences.

    Example:
        >>> print(escape_json("</script>"))
        "\u003c/script>"
    """
    text = json.dumps(data, ensure_ascii=False)
    return _UNSAFE_IN_SCRIPT.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _bundle(folder: Path, module: str, bundled: dict[str, str], parents: tuple[str, ...]) -> None:
    if module in parents:
        raise RegardError(f"imports must not be circular: {' > '.join((*parents, module))}")
    if module in bundled:
        return
    text = (folder / f"{module}.js").read_text("utf-8")
    for match in _IMPORT.finditer(text):
        _bundle(folder, _resolve(module, match[2]), bundled, (*parents, module))
    body = _IMPORT.sub(lambda match: _replace_import(module, match), text)
    body = _EXPORT.sub(lambda match: match[0].removeprefix("export "), body)
    unsupported = re.search(r"^(?:import|export)\b.*", body, re.MULTILINE)
    if unsupported:
        raise RegardError(f"{module}.js must import and export by name, not {unsupported[0]!r}")
    exports = ", ".join(match[1] for match in _EXPORT.finditer(text))
    bundled[module] = (
        f"const {module_variable(module)} = (() => {{\n{body}return {{ {exports} }};\n}})();"
    )


def _resolve(module: str, path: str) -> str:
    """Return the path of an imported module, relative to the folder of the entry module."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(module), path))


def _replace_import(module: str, match: re.Match[str]) -> str:
    names, imported = match[1], module_variable(_resolve(module, match[2]))
    if names.startswith("*"):
        return f"const {names.removeprefix('* as ')} = {imported};\n"
    return f"const {re.sub(r' as ', ': ', names)} = {imported};\n"
