"""The command line: `app` (app.py), commands (commands.py), errors in one line, and stdin.

`regard --help` imports neither torch nor matplotlib: every command imports what it needs when it
runs.
"""

from regard.cli.commands import app

__all__ = ["app"]
