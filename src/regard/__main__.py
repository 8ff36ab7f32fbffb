"""`python -m regard`: the command, where it is not on the PATH."""

from regard.cli import app

if __name__ == "__main__":
    app(prog_name="regard")
