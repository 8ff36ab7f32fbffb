"""The documentation's code runs, and its tables and links match the source."""

import dataclasses
import inspect
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch

from regard import training
from regard.config import RunConfig, parse_assignment
from regard.data import read_pairs
from regard.errors import RegardError
from regard.runs import load
from regard.training.defaults import DEFAULTS_BY_SIZE

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").glob("*.md"))


def blocks(name):
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / name).read_text(), flags=re.DOTALL)


@pytest.mark.usefixtures("unchecked")
def test_tour_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks("tour.md"):
        exec(block, names)
    assert names["best"].text and len(names["others"]) == 2
    kinds = [m.kind for m in names["trace"].maps]
    assert kinds.count("cross") == 2 and len(kinds) == 6  # two layers, three kinds
    assert (tmp_path / "cat.html").exists() and (tmp_path / "cat.json").exists()


@pytest.mark.usefixtures("unchecked")
def test_getting_started_runs(tiny_run, tmp_path, monkeypatch, capsys):
    """Training is checked for its arguments only, and gives a small run."""
    corpora = []

    def train(*arguments, **options):
        bound = inspect.signature(training.train).bind(*arguments, **options)
        corpora.append(list(read_pairs([Path(bound.arguments["corpus"])])))
        return load(tiny_run)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("regard.train", train, raising=False)
    names: dict[str, object] = {}
    for block in blocks("getting-started.md"):
        exec(block, names)
    (corpus,) = corpora
    held_out = {pair.source for pair in names["book"].test}
    assert len(corpus) == 20_000 and not held_out & {pair.source for pair in corpus}
    assert names["weights"].shape == (1, 4, 3, 5)
    assert not torch.equal(names["changed"], names["output"])
    (cross,) = (m for m in names["relevance"].maps if m.kind == "cross")
    assert cross.weights.max() > 1e-3  # more than rounding noise
    assert "BLEU" in capsys.readouterr().out
    assert Path("head.png").exists() and Path("look.html").exists()


@pytest.mark.usefixtures("unchecked")
def test_python_page_runs(tiny_run, tmp_path, monkeypatch, capsys):
    """Training is checked for its arguments only, and gives a small run."""
    calls = []

    def train(*arguments, **options):
        calls.append(inspect.signature(training.train).bind(*arguments, **options).arguments)
        return load("run")

    monkeypatch.chdir(tmp_path)
    shutil.copytree(tiny_run, "run")
    Path("test.en").write_text("the old cat\nthe red boat\n")
    Path("test.fr").write_text("le vieux chat\nle bateau rouge\n")
    monkeypatch.setattr("regard.train", train, raising=False)
    names: dict[str, object] = {}
    for block in blocks("python.md"):
        exec(block, names)
    assert calls[0]["corpus"] == "pairs.tsv" and len(calls) == 4
    (callback,) = calls[-1]["callbacks"]
    callback.on_validation(training.TrainState(step=7), training.ValidationResult(1.0))
    assert len(names["many"]) == 2 and len(names["hypotheses"]) == 2
    output = capsys.readouterr().out
    assert "step 7: 1.000" in output and "BLEU" in output


@pytest.mark.usefixtures("unchecked")
def test_engines_page_runs(tiny_run, tmp_path, monkeypatch):
    pytest.importorskip("ctranslate2", reason="the extra fast is not installed")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tiny_run, "run")
    names: dict[str, object] = {}
    for block in blocks("engines.md"):
        exec(block, names)
    assert [names[name].engine.name for name in ("run", "reference", "quantized")] == [
        "ctranslate2",
        "torch",
        "ctranslate2",
    ]


@pytest.mark.usefixtures("unchecked")
def test_attribution_page_runs():
    names: dict[str, object] = {}
    for block in blocks("attribution.md"):
        exec(block, names)
    assert {m.kind for m in names["relevance"].maps} == {"self", "cross"}
    assert all(m.weights.max() > 1e-3 for m in names["relevance"].maps if m.kind == "cross")
    assert names["speaks_for"].shape == (1, 5)


@pytest.mark.usefixtures("unchecked")
def test_look_change_attribute_runs():
    names: dict[str, object] = {}
    for block in blocks("look-change-attribute.md"):
        exec(block, names)
    assert len(names["edited"]) == len(names["capture"])


def test_score_can_be_added_as_documented(tmp_path):
    trial, file, line, use = blocks("add-a-score.md")
    exec(trial, {})
    package = tmp_path / "regard"
    shutil.copytree(ROOT / "src" / "regard", package, ignore=shutil.ignore_patterns("__pycache__"))
    scores = package / "attention" / "scores"
    (scores / "manhattan.py").write_text(file)
    page = (ROOT / "docs" / "add-a-score.md").read_text()
    (imports,) = re.findall(r"`(from regard\.attention\.scores\.manhattan .*?)`", page)
    code = (scores / "registry.py").read_text()
    code = code.replace('        "cosine": Cosine,', f'        "cosine": Cosine,\n{line}')
    code = code.replace("from regard.errors", f"{imports}\nfrom regard.errors")
    (scores / "registry.py").write_text(code)
    done = subprocess.run([sys.executable, "-c", use], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with pytest.raises(RegardError, match="no attention score is called 'manhattan'"):
        exec(use, {})  # the package itself does not have it


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_links_and_named_files_exist(page):
    text = page.read_text()
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert link.startswith("https://") or (page.parent / link).exists(), link
    for name in set(re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)`", text)) - {
        "src/regard/attention/scores/manhattan.py",
        "tests/attention/scores/test_manhattan.py",
    }:
        assert (ROOT / name).exists() or list((ROOT / "src" / "regard").rglob(name)), name


def settings_rows(section):
    """Make the rows of a section's table from the settings' own source: name, default, meaning."""
    source = inspect.getsource(type(section))
    for name, kind, meaning in re.findall(r"^    (\w+): (.+?) = .+?(?:  # (.*))?$", source, re.M):
        if not kind.startswith(("Literal", "str", "int", "float", "bool", "tuple")):
            continue
        default = getattr(section, name)
        shown = "not set" if default is None else f"`{json.dumps(default)}`"
        choices = ", ".join(re.findall(r'"(.*?)"', kind))
        description = " · ".join(part for part in (meaning, choices) if part)
        yield f"| `{name}` | {shown} | {description} |"


@pytest.mark.parametrize("name", ["data", "model", "train", "search"])
def test_settings_page_has_every_setting(name):
    page = (ROOT / "docs" / "settings.md").read_text()
    table = page.split(f"\n## {name}:")[1].split("\n## ")[0]
    section = getattr(RunConfig(), name)
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    assert rows == list(settings_rows(section))
    assert len(rows) == len(dataclasses.fields(section))


def test_settings_page_has_the_defaults_by_size():
    page = (ROOT / "docs" / "settings.md").read_text()
    table = page.split("## Defaults by size")[1]
    lines = [line.strip("| ").split(" | ") for line in table.splitlines() if line[:2] == "| "]
    table_rows = {name.strip("`"): tuple(cells) for name, *cells in lines}
    limits = (f"under {limit:,} pairs" for limit, _ in DEFAULTS_BY_SIZE[:-1])
    assert table_rows == {"name": (*limits, "more"), **dict(defaults_by_size())}


def defaults_by_size():
    """Yield each setting that depends on the size, and its values as the page writes them."""
    sizes = [
        {f"{part}.{key}": value for part, keys in sections.items() for key, value in keys.items()}
        for _, sections in DEFAULTS_BY_SIZE
    ]
    for name in dict.fromkeys(name for size in sizes for name in size):
        values = (size.get(name, "as above") for size in sizes)
        yield name, tuple(v if v == "as above" else f"`{json.dumps(v)}`" for v in values)


def test_settings_page_examples_are_valid():
    page = (ROOT / "docs" / "settings.md").read_text()
    (file,) = re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)
    by_file = RunConfig.from_dict(tomllib.loads(file))
    by_command = RunConfig()
    for one in re.findall(r"--set (\S+)", page.split("```")[1]):
        by_command = by_command.update(parse_assignment(one))
    for settings in (by_file, by_command):
        assert (settings.model.layers, settings.train.learning_rate) == (6, 1e-3)
    assert by_file.train.betas == (0.9, 0.999)
