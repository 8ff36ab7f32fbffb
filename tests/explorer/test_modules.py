"""The page's own modules: their pure parts in node, and what all of them keep to."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from regard.explorer.app import STATIC

TESTS = Path(__file__).parent / "static"


def test_the_modules_pass_their_own_tests():
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed: the explorer's modules were not tested")
    tests = sorted(TESTS.glob("*.test.mjs"))
    ran = subprocess.run([node, "--test", *tests], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-4000:]


@pytest.mark.parametrize("module", sorted(STATIC.rglob("*.js")), ids=lambda path: path.name)
def test_a_module_is_plain_short_and_says_what_it_holds(module):
    text = module.read_text("utf-8")
    assert text.startswith("/** ")
    assert text.count("\n") < 250
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)


def test_the_page_has_nothing_inline_that_its_policy_would_refuse():
    html = (STATIC / "index.html").read_text("utf-8")
    assert not re.search(r"\son\w+=|\sstyle=|<style|javascript:", html)
    assert re.findall(r"<script[^>]*>(.*?)</script>", html, re.DOTALL) == [""]
    assert all(url.startswith("/") for url in re.findall(r'(?:src|href)="([^"]*)"', html))
