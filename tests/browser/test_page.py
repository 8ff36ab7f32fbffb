"""The page as a document: its policy, what it holds, and that text cannot become markup."""

import base64
import hashlib
import json
import re

from helpers.browser_fixtures import SEARCH, untrained
from regard.browser import describe_translator, render_translator
from regard.config import ModelConfig
from regard.data import Tokenizer, Tokenizers
from regard.models import build

HOSTILE = ["</script><script>alert(1)</script>", "<!--", "\u2028", "]]>", "\u202eabc", " <b>"]


def hostile_page():
    tokenizer = Tokenizer("words", HOSTILE)
    model = build(ModelConfig(width=8, layers=1, heads=2), len(tokenizer)).eval()
    data = describe_translator(
        model,
        Tokenizers(tokenizer, tokenizer),
        SEARCH,
        name="</title><script>\x1b\u202e",
        examples=("</script>",),
    )
    return render_translator(data)


def element(page, name):
    return re.search(rf'<script [^>]*id="{name}">(.*?)</script>', page, re.DOTALL)[1]


def test_pieces_and_names_with_markup_do_not_end_their_elements():
    page = hostile_page()
    record = json.loads(element(page, "model"))
    assert record["source_tokenizer"]["pieces"] == HOSTILE
    assert record["examples"] == ["</script>"]
    assert page.count("<script") == page.count("</script>") == 4  # model, parameters, two scripts
    assert page.count("</title>") == 1
    assert "\x1b" not in page and "<!--" not in page and "\u2028" not in page
    assert record["name"] == "</title><script>\\x1b\\u202e"


def test_policy_allows_the_scripts_and_styles_of_the_page_and_nothing_else():
    model, tokenizers = untrained()
    page = render_translator(describe_translator(model, tokenizers, SEARCH, name="tiny"))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    directives = dict(part.split(" ", 1) for part in policy.split("; "))
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    hashes = [
        f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'"
        for one in scripts
    ]
    assert len(scripts) == 2 and directives["script-src"].split() == hashes
    assert directives["default-src"] == "'none'" and directives["worker-src"] == "blob:"
    assert "connect-src" not in directives and "unsafe" not in policy
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)


def test_equal_models_give_equal_pages():
    pages = {
        render_translator(describe_translator(*untrained(), SEARCH, name="tiny")) for _ in range(2)
    }
    assert len(pages) == 1


def test_smaller_types_give_smaller_pages():
    sizes = [
        len(describe_translator(*untrained(), SEARCH, name="t", quantization=name).parameters)
        for name in ("int8", "float16", "float32")
    ]
    assert sizes == sorted(sizes) and sizes[0] < 0.6 * sizes[2]
