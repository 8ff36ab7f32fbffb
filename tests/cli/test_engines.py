"""Engines, quantization and export, as the command line has them."""

import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import regard
from regard.cli import app
from regard.runs import engines

pytest.importorskip("ctranslate2", reason="the extra fast is not installed")

pytestmark = pytest.mark.usefixtures("unchecked")

TEXT = "the old cat sees the dog"


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def error_line(*arguments):
    """Run a command that must fail; return its only line of stderr."""
    result = invoke(*arguments)
    assert result.exit_code == 1, result.output
    assert result.stderr.count("\n") == 1 and result.stderr.startswith("regard: ")
    return result.stderr


@pytest.fixture
def texts(tmp_path):
    paths = tmp_path / "test.en", tmp_path / "test.fr"
    paths[0].write_text(f"{TEXT}\n")
    paths[1].write_text("le chat vieux voit le chien\n")
    return paths


@pytest.fixture
def arguments_of(tiny_run, texts, tmp_path):
    return {
        "translate": ("translate", tiny_run, TEXT),
        "score": ("score", tiny_run, *texts),
        "explore": ("explore", tiny_run, "--port", "0"),
        "serve": ("serve", f"{tiny_run}=en:fr", "--port", "0"),
        "export": ("export", tiny_run, "--out", tmp_path / "exported"),
    }


COMMANDS = ("translate", "score", "explore", "serve")


@pytest.mark.parametrize("command", COMMANDS)
def test_wrong_engine_offers_the_nearest(arguments_of, command):
    line = error_line(*arguments_of[command], "--engine", "ctranslat")
    assert "no engine is called 'ctranslat'. Did you mean 'ctranslate2'?" in line


@pytest.mark.parametrize("command", [*COMMANDS, "export"])
def test_wrong_quantization_offers_the_nearest(arguments_of, command):
    line = error_line(*arguments_of[command], "--quantization", "int9")
    assert "no quantization is called 'int9'. Did you mean 'int8'?" in line


@pytest.mark.parametrize("command", COMMANDS)
def test_quantization_with_torch_is_refused(arguments_of, command):
    line = error_line(*arguments_of[command], "--engine", "torch", "--quantization", "int8")
    assert "--quantization must be float32, but it is int8: torch has no other" in line


@pytest.mark.parametrize("command", COMMANDS)
def test_missing_ctranslate2_names_the_extra(arguments_of, command, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    line = error_line(*arguments_of[command], "--engine", "ctranslate2")
    assert line.endswith(
        "the CTranslate2 engine needs ctranslate2, which is not installed: "
        "pip install 'regard[fast]'\n"
    )


@pytest.mark.parametrize("command", ["translate", "score", "serve"])
def test_model_that_cannot_be_represented_names_the_part(arguments_of, command, monkeypatch):
    monkeypatch.setattr(engines, "unsupported_part", lambda model: "ALiBi positions")
    line = error_line(*arguments_of[command], "--engine", "ctranslate2")
    assert "CTranslate2 cannot represent ALiBi positions of this model; use --engine torch" in line


@pytest.mark.parametrize("command", ["translate", "score"])
def test_verbose_reports_which_engine_translates_and_why(arguments_of, command):
    for options, expected in (
        (
            ["--quantization", "int8"],
            "CTranslate2Engine(quantization='int8'), since CTranslate2 is",
        ),
        (["--engine", "torch"], "TorchEngine(), since the engine is torch"),
    ):
        result = invoke(*arguments_of[command], "--verbose", *options)
        assert result.exit_code == 0, result.output
        assert f"engine: {expected}" in result.stderr
        assert "engine: " not in result.stdout
        assert "engine: " not in invoke(*arguments_of[command], *options).stderr


def test_engines_print_the_same_translation(tiny_run):
    arguments = ("translate", tiny_run, TEXT, "--beam-size", "1")
    printed = {invoke(*arguments, "--engine", name).stdout for name in ("torch", "ctranslate2")}
    assert printed == {f"{regard.load(tiny_run).translate(TEXT, beam_size=1)}\n"}


def test_lengths_are_limited(tiny_run):
    run = regard.load(tiny_run)
    result = invoke("translate", tiny_run, TEXT, "--min-length", "9", "--max-length", "9")
    expected = run.translate(TEXT, min_length=9, max_length=9)
    assert len(expected.tokens) == 9
    assert result.stdout == f"{expected}\n"
    line = error_line("translate", tiny_run, TEXT, "--min-length", "9", "--max-length", "8")
    assert line == "regard: --min-length must be at most --max-length 8, but it is 9\n"


def test_export_writes_a_ctranslate2_model(arguments_of, tmp_path):
    result = invoke(*arguments_of["export"], "--quantization", "int8")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"wrote {tmp_path / 'exported'}: return_attention gives layer ")
    assert (tmp_path / "exported" / "model.bin").exists()


def test_export_writes_a_page_named_after_the_run(tiny_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke("export", tiny_run, "--to", "html", "--quantization", "int8")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"wrote {tiny_run.name}.html: ")
    assert (tmp_path / f"{tiny_run.name}.html").read_text("utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.compile
def test_exported_onnx_graphs_translate_by_the_code_in_their_readme(tmp_path):
    """In processes of their own: torch.export cannot trace the shape checks of tests."""
    pytest.importorskip("onnxscript", reason="the extra onnx is not installed")
    pytest.importorskip("onnxruntime")
    out = tmp_path / "exported"
    command = [sys.executable, "-m", "regard", "export", "demo-model", "--to", "onnx", "--out", out]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith(f"wrote {out}: encoder.onnx, decoder.onnx")
    readme = (out / "README.md").read_text()
    assert "| `keys_1` | batch, 4, past, 32 |" in readme
    code = re.search(r"```python\n(.*?)```", readme, re.DOTALL)[1]
    run = regard.load("demo-model", engine="torch")
    for text in ("The white cat broke the cup.", "The dog sleeps."):
        program = "import sys; sys.modules['regard'] = sys.modules['torch'] = None\n"
        program += code.replace("A sentence.", text)
        result = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True
        )
        assert result.stdout == f"{run.translate(text, beam_size=1)}\n", result.stderr


def test_export_errors_are_one_line(arguments_of, tmp_path, monkeypatch):
    export = arguments_of["export"]
    assert "no format is called 'onx'. Did you mean 'onnx'?" in error_line(*export, "--to", "onx")
    line = error_line(*export, "--to", "onnx", "--quantization", "int8")
    assert "--quantization must be float32 for ONNX, but it is int8" in line
    line = error_line(*export, "--to", "html")
    assert "--out must be a file such as exported.html, but it is " in line
    with monkeypatch.context() as missing:
        missing.setitem(sys.modules, "ctranslate2", None)
        missing.setitem(sys.modules, "ctranslate2.specs", None)
        assert "pip install 'regard[fast]'" in error_line(*export)
    (tmp_path / "exported").mkdir()
    (tmp_path / "exported" / "note.txt").write_text("mine")
    assert "must be a new or empty folder" in error_line(*export)
