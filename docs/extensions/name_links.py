"""Links from names in the text to their entries.

Docstrings and guides write code between single backticks. It becomes a link where it is a public
name: `attend`, `Run.trace`, `analysis.attribute`, `regard.watch`.
"""

import inspect
import pydoc
import re
from typing import Any

from docstrings import fields_of
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.domains.python import PyXRefRole
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxRole
from sphinx.util.nodes import make_refnode

IDENTIFIER = re.compile(r"[A-Za-z_][\w.]*(\(\))?")


class CodeOrLink(SphinxRole):
    """Text between single backticks in a docstring."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return a reference for what may be a public name, and a literal for anything else."""
        if not IDENTIFIER.fullmatch(self.text) or self.text in self.arguments():
            return [nodes.literal(self.rawtext, self.text)], []
        return PyXRefRole()(
            "py:obj", self.rawtext, self.text, self.lineno, self.inliner, self.options, self.content
        )

    def arguments(self) -> set[str]:
        """Return the names of the arguments and fields of the object that is documented here."""
        documented = re.search(r"docstring of ([\w.]+)", self.get_source_info()[0])
        value = pydoc.locate(documented[1]) if documented else None
        if not callable(value):
            return set()
        fields = fields_of(value) if inspect.isclass(value) else []
        try:
            return {*fields, *inspect.signature(value).parameters}
        except ValueError:  # an exception without a signature
            return set(fields)


class LinkNamesInGuides(SphinxTransform):
    """Make a reference of the inline code of Markdown pages that may be a public name."""

    default_priority = 400

    def apply(self, **options: Any) -> None:
        """Replace each literal such as `regard.watch` or `Run.trace(…)`."""
        for literal in list(self.document.findall(nodes.literal)):
            name = literal.astext().partition("(")[0]
            inside_link = isinstance(literal.parent, nodes.reference | pending_xref)
            if "." not in name or not IDENTIFIER.fullmatch(name) or inside_link:
                continue
            reference = pending_xref(
                "", refdomain="py", reftype="obj", reftarget=name, refwarn=False
            )
            literal.replace_self(reference)
            reference += literal


def resolve_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element
) -> nodes.Element | None:
    """Resolve the end of a public name, such as `Run.trace`; leave any other name as code."""
    if node.get("refdomain") != "py" or node["reftype"] not in {"obj", "class", "exc", "data"}:
        return None
    target = node["reftarget"].removesuffix("()")
    if target.islower() and "." not in target and "_" not in target:
        return content  # more likely an argument than a function
    as_class = target[0].upper() + target[1:]  # `run.trace` of an object, `Run.trace` of its class
    entries = find_entries(env, target) or find_entries(env, as_class)
    if len(entries) != 1:
        return content
    ((docname, node_id),) = entries
    return make_refnode(app.builder, node["refdoc"], docname, node_id, content)


def find_entries(env: BuildEnvironment, ending: str) -> set[tuple[str, str]]:
    """Return page and anchor of all entries whose names have an ending."""
    return {
        (entry.docname, entry.node_id)
        for name, entry in env.domains.python_domain.objects.items()
        if name.endswith(f".{ending}") and entry.objtype != "module"
    }


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the role, the transform and the handler."""
    app.add_role("code-or-link", CodeOrLink())
    app.add_transform(LinkNamesInGuides)
    app.connect("missing-reference", resolve_name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
