"""The page's JavaScript modules, compared with the Python modules in node; rules of the policy."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import regard
from helpers.browser_fixtures import MODELS, TEXTS, model_fixture, tokenizer_fixture
from regard.browser import STATIC_FOLDER
from regard.data import unseen_words
from regard.data.phrasebook import load_phrasebook, load_source_words

TESTS = Path(__file__).parent / "static"
MODULES = sorted(STATIC_FOLDER.rglob("*.js"))


@pytest.fixture(scope="module")
def node():
    path = shutil.which("node")
    if path is None:
        pytest.skip("node is not installed: the page's modules were not tested")
    return path


def run_tests(node, tests, fixtures):
    environment = os.environ | {"REGARD_FIXTURES": str(fixtures)}
    command = [node, "--test", *(TESTS / f"{test}.test.mjs" for test in tests)]
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stdout[-4000:]


def test_tokenizer_agrees_with_python(node, tmp_path, unchecked):
    (tmp_path / "tokenizers.json").write_text(json.dumps(tokenizer_fixture()))
    run_tests(node, ["tokenizer"], tmp_path)


def test_translations_and_traces_agree_with_torch(node, tmp_path, unchecked):
    models = {name: model_fixture(*build(), TEXTS) for name, build in MODELS.items()}
    (tmp_path / "models.json").write_text(json.dumps(models))
    run_tests(node, ["translator", "worker"], tmp_path)


@pytest.mark.train  # it translates for seconds
def test_the_shipped_model_translates_as_torch_does(node, tmp_path, unchecked):
    run = regard.load("demo-model", engine="torch")
    texts = [pair.source for pair in load_phrasebook("fr").test[:60]]
    fixture = model_fixture(
        run.model, run.tokenizers, texts, run.settings.search, "float16", traces=3
    )
    (tmp_path / "models.json").write_text(json.dumps({"demo-model": fixture}))
    run_tests(node, ["translator"], tmp_path)


def test_unseen_words_are_those_that_python_finds(node, tmp_path, unchecked):
    words = sorted(load_source_words("fr"))
    texts = [
        *TEXTS,
        "The dog's keyboard, the Keyboard",
        "don’t I'm 3½ ２ ①",
        "İstanbul ÉTÉ _a 猫坐 é",
    ]
    expected = [unseen_words([text], words) for text in texts]
    assert sum(map(bool, expected)) > 3
    fixture = {"words": words, "texts": texts, "expected": expected}
    (tmp_path / "unseen_words.json").write_text(json.dumps(fixture))
    run_tests(node, ["unseenWords"], tmp_path)


def test_kernels_search_and_alignments(node, tmp_path):
    run_tests(node, ["kernels", "beamSearch", "alignment"], tmp_path)


@pytest.mark.parametrize(
    "module", MODULES, ids=lambda path: path.relative_to(STATIC_FOLDER).as_posix()
)
def test_module_is_documented_short_and_writes_no_markup(module):
    text = module.read_text("utf-8")
    assert text.startswith("/** ")
    assert text.count("\n") < 250
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
    assert not re.search(r"https?://|\bfetch\(|XMLHttpRequest|WebSocket", text)
