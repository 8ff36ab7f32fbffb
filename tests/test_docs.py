"""What the documentation shows must run and be true."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from regard import lesson
from regard.text.phrasebook import corpus

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").glob("*.md"))


def blocks(name):
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / name).read_text(), flags=re.DOTALL)


@pytest.mark.usefixtures("unchecked")
def test_every_line_of_the_tour_runs(tmp_path, monkeypatch):
    book = corpus("fr", train=300, valid=20, test=20)
    monkeypatch.setattr("regard.lesson.corpus", lambda _: book)
    monkeypatch.chdir(tmp_path)
    lesson.learn(Path("demo"), minutes=0.05)
    names: dict[str, object] = {}
    for block in blocks("tour.md"):
        exec(block, names)
    assert names["best"].text and len(names["others"]) == 2
    kinds = [look.kind for look in names["trace"].looks]
    assert kinds.count("cross") == 2 and len(kinds) == 6  # two layers, three kinds
    assert (tmp_path / "cat.html").exists() and (tmp_path / "cat.json").exists()


def test_a_score_is_added_just_as_it_is_told(tmp_path):
    tried, file, line, used = blocks("add-a-score.md")
    exec(tried, {})
    package = tmp_path / "regard"
    shutil.copytree(ROOT / "src" / "regard", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "attention" / "manhattan.py").write_text(file)
    table = package / "attention" / "scores.py"
    said = (ROOT / "docs" / "add-a-score.md").read_text()
    (imported,) = re.findall(r"`(from regard\.attention\.manhattan .*?)`", said)
    code = table.read_text().replace(
        '        "cosine": Cosine,', f'        "cosine": Cosine,\n{line}'
    )
    table.write_text(code.replace("from regard.errors", f"{imported}\nfrom regard.errors"))
    done = subprocess.run(
        [sys.executable, "-c", used], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    done = subprocess.run(
        [sys.executable, "-c", used], cwd=ROOT / "src", capture_output=True, text=True
    )
    assert "no attention score is called 'manhattan'" in done.stderr  # not there before


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_every_link_and_every_file_that_is_named_is_there(page):
    text = page.read_text()
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert link.startswith("https://") or (page.parent / link).exists(), link
    for name in set(re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)`", text)) - {
        "src/regard/attention/manhattan.py",
        "tests/attention/test_manhattan.py",
    }:
        assert (ROOT / name).exists() or list((ROOT / "src" / "regard").rglob(name)), name
