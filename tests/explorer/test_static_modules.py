"""The page's JavaScript modules: unit tests in node, and rules that the policy requires."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from regard.explorer.static_files import STATIC

TESTS = Path(__file__).parent / "static"
MODULES = sorted(STATIC.rglob("*.js"))


def test_modules_pass_their_node_tests():
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed: the explorer's modules were not tested")
    tests = sorted(TESTS.glob("*.test.mjs"))
    result = subprocess.run([node, "--test", *tests], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-4000:]


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.relative_to(STATIC).as_posix())
def test_module_is_documented_short_and_writes_no_markup(module):
    text = module.read_text("utf-8")
    assert text.startswith("/** ")
    assert text.count("\n") < 250
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)


def test_index_page_has_nothing_inline_that_the_policy_forbids():
    html = (STATIC / "index.html").read_text("utf-8")
    assert not re.search(r"\son\w+=|\sstyle=|<style|javascript:", html)
    assert re.findall(r"<script[^>]*>(.*?)</script>", html, re.DOTALL) == [""]
    assert all(url.startswith("/") for url in re.findall(r'(?:src|href)="([^"]*)"', html))
