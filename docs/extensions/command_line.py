"""The directive `command-line`: a section for each command, from its `--help`."""

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from typer import Context
from typer.core import TyperCommand
from typer.main import get_group

from regard.cli import app as commands


class CommandLine(SphinxDirective):
    """Every command of `regard` that `regard --help` lists."""

    def run(self) -> list[nodes.Node]:
        """Return a section for each command."""
        group = get_group(commands)
        context = Context(group, info_name="regard")
        shown = [group.commands[name] for name in group.list_commands(context)]
        lines = [
            line
            for command in shown
            if not command.hidden
            for line in describe(command, Context(command, context, info_name=command.name))
        ]
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def describe(command: TyperCommand, context: Context) -> Iterator[str]:
    """Yield the Markdown of one command."""
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield from (f"## regard {command.name}", "", command.help or "", "")
    yield from ("```", usage, "```", "")
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    rows = [(name, text) for name, text in filter(None, records) if "--help" not in name]
    if rows:
        yield from ("| | |", "|---|---|")
        for name, text in rows:
            yield f"| `` {escape_cell(name)} `` | {escape_cell(link_options(text))} |"
    yield ""


def link_options(text: str) -> str:
    """Return a help text with options as code, where they are not yet."""
    return re.sub(r"(?<![`\w-])--[a-z][a-z-]+", r"`\g<0>`", re.sub("\n *", " ", text))


def escape_cell(text: str) -> str:
    """Return a text without what would end the cell of a table."""
    return text.replace("|", r"\|")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-line", CommandLine)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
