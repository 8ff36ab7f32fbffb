"""The directive `public-names`.

    ```{public-names} regard.masks
    causal
    window
    ```

makes a table of these names with the first sentences of their docstrings, and an entry for each.
"""

import inspect
from importlib import import_module

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective


class PublicNames(SphinxDirective):
    """A table of names of a package, and an entry for each."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the table and of the entries."""
        package = self.arguments[0]
        module = import_module(package)
        names = [line.strip() for line in self.content if line.strip()]
        lines = [f".. currentmodule:: {package}", "", ".. autosummary::", "   :nosignatures:", ""]
        lines += [f"   {name}" for name in names]
        for name in names:
            value = getattr(module, name)
            if belongs_to_other_package(value, package):
                continue
            lines += ["", f".. {entry_directive(value)} {package}.{name}"]
            if not is_readable(value):
                lines += ["   :no-value:"]
        return self.parse_text_to_nodes("\n".join(["```{eval-rst}", *lines, "```"]))


def belongs_to_other_package(value: object, package: str) -> bool:
    """Return whether a class or function has its entry on the page of another package."""
    home = getattr(value, "__module__", package).split(".")
    return home[0] == "regard" and home[1][0] != "_" and home[1] != package.split(".")[1]


def entry_directive(value: object) -> str:
    """Return the directive of autodoc that documents a value."""
    if inspect.ismodule(value):
        return "automodule::"
    if inspect.isclass(value) and value.__module__.startswith("regard."):
        return "autoexception::" if issubclass(value, BaseException) else "autoclass::"
    return "autofunction::" if inspect.isroutine(value) else "autodata::"


def is_readable(value: object) -> bool:
    """Return whether the repr of a value is worth showing, unlike that of a path or a mapping."""
    return entry_directive(value) != "autodata::" or isinstance(value, str | int | float | tuple)


def add_other_names(app: Sphinx, env: BuildEnvironment) -> None:
    """Let `regard.attend` stand for `regard.attention.attend`, in links and in objects.inv."""
    objects = env.domains.python_domain.objects
    faces = [name for name, entry in objects.items() if entry.objtype == "module"]
    for face in map(import_module, faces):
        for name in getattr(face, "__all__", ()):
            home = ".".join(getattr(getattr(face, name), "__module__", "").split(".")[:2])
            if (entry := objects.get(f"{home}.{name}")) and not entry.aliased:
                objects.setdefault(f"{face.__name__}.{name}", entry._replace(aliased=True))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive and the other names."""
    app.add_directive("public-names", PublicNames)
    app.connect("env-updated", add_other_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
