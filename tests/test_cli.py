import subprocess
import sys

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from regard import __version__, demo
from regard.cli import app
from regard.errors import RegardError

VERBS = sorted(get_command(app).commands)


def run(*arguments):
    return CliRunner().invoke(app, arguments)


def python(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True)


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_names_every_verb(option):
    result = run(option)
    assert result.exit_code == 0
    assert "Attention you can use, train and see." in result.stdout
    assert all(f"\n  {verb} " in result.stdout for verb in VERBS)


@pytest.mark.parametrize("option", ["-h", "--help"])
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb, option):
    result = run(verb, option)
    assert result.exit_code == 0
    assert f"{verb} [OPTIONS]" in result.stdout
    assert get_command(app).commands[verb].help.splitlines()[0] in result.stdout


def test_the_version_is_the_packages():
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"regard {__version__}\n")


def test_the_demo_saves_the_picture_where_it_is_told(tmp_path):
    result = run("demo", "--out", str(tmp_path / "five.svg"))
    assert result.exit_code == 0
    assert "Where each word looks" in result.stdout
    assert (tmp_path / "five.svg").read_text().startswith("<?xml")


def test_what_a_user_can_repair_is_one_line_on_stderr(tmp_path):
    result = run("demo", "--out", str(tmp_path / "five.docx"))
    assert result.exit_code == 1
    assert result.stderr.startswith("regard: no picture format is called 'docx'")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output


def test_a_mistake_of_ours_keeps_its_traceback(monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(demo, "demo", fail)
    assert isinstance(run("demo").exception, ZeroDivisionError)


@pytest.mark.parametrize("arguments", [["dmeo"], ["demo", "--uot", "x"]])
def test_a_wrong_word_on_the_command_line_is_a_usage_error(arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Did you mean" in result.stderr or "No such option" in result.stderr


def test_help_imports_neither_torch_nor_matplotlib():
    check = (
        "import sys; from regard.cli import app; app(['--help'], standalone_mode=False); "
        "print({'torch', 'matplotlib'} & set(sys.modules))"
    )
    found = python("-c", check)
    assert found.stdout.endswith("\nset()\n")
    assert "Usage:" in found.stdout


def test_the_module_runs_as_the_command():
    found = python("-m", "regard", "--version")
    assert (found.returncode, found.stdout) == (0, f"regard {__version__}\n")
    assert python("-m", "regard", "-h").stdout.startswith("Usage: regard [OPTIONS]")


def test_an_error_of_a_verb_is_the_one_line_in_a_real_process_too(tmp_path):
    found = python("-m", "regard", "demo", "--out", str(tmp_path / "nowhere" / "x.png"))
    assert found.returncode == 1
    assert found.stderr.startswith("regard: cannot write ")
    assert found.stderr.count("\n") == 1


def test_the_message_is_that_of_the_error(monkeypatch):
    def fail(*_):
        raise RegardError("no such thing; another would do")

    monkeypatch.setattr(demo, "demo", fail)
    assert run("demo").stderr == "regard: no such thing; another would do\n"


def test_the_bare_command_shows_its_help():
    assert "Commands:\n  demo " in run().output
