"""The command line."""

from regard.cli.commands import app as app
