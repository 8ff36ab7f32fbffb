"""The command line: `app` (app.py), commands (commands.py, servers.py), and errors.

`regard --help` imports neither torch nor matplotlib: every command imports what it needs when it
runs.
"""

from regard.cli.commands import app  # isort: split

from regard.cli import servers as servers

__all__ = ["app"]
