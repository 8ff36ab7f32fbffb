import base64
import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from regard import RegardError
from regard.analysis import select_head
from regard.trace import Trace, build_translation_trace
from regard.viz import STATIC_FOLDER, page_payload, render_page, resolve_head, save_page


def embedded_json(html, name):
    match = re.search(f'<script type="application/json" id="{name}">(.*?)</script>', html)
    return json.loads(match[1])


def test_page_embeds_the_trace_in_its_file_format(trace):
    record = embedded_json(render_page(trace), "trace")
    restored = Trace.from_dict(record | {"maps": []})
    assert (restored.tokens, restored.gold, restored.title) == (
        trace.tokens,
        trace.gold,
        trace.title,
    )
    expected = trace.to_dict()["maps"]
    assert [m["weights"] for m in record["maps"][:-1]] == [m["weights"] for m in expected[:-1]]
    assert set(record["maps"][-1]["summary"]) == {"top_keys", "top_weights", "remainder", "tiles"}


def test_page_opens_at_the_given_head(trace):
    assert embedded_json(render_page(trace, "cross", -1, 3), "view-state") == {
        "kind": "cross",
        "layer": 2,
        "head": 3,
        "rows": "output",
    }
    assert embedded_json(render_page(trace, rows="input"), "view-state")["rows"] == "input"
    with pytest.raises(RegardError, match=r"no head 7 in encoder.0"):
        render_page(trace, "encoder", 0, 7)


def test_payload_names_the_selected_head_of_each_attention(trace):
    selected = page_payload(trace)["selected_heads"]
    assert [item["kind"] for item in selected] == ["encoder", "decoder", "cross"]
    for item in selected:
        group, layer, head = resolve_head(trace, item["kind"])
        chosen = select_head(trace, group.maps)
        assert (item["layer"], item["head"]) == (layer, head)
        assert (item["criterion"], item["value"]) == (chosen.criterion, chosen.value)


def test_unknown_rows_of_a_page_are_refused(unchecked, trace):
    with pytest.raises(RegardError, match="rows must be 'output' or 'input'"):
        render_page(trace, rows="both")


def test_content_security_policy_allows_only_its_own_script_and_style(trace):
    html = render_page(trace)
    policy = re.search('Content-Security-Policy" content="([^"]*)"', html)[1]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy and "http" not in policy
    for tag, source in (("script", "script-src"), ("style", "style-src")):
        text = re.search(f"<{tag}>(.*?)</{tag}>", html, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{source} 'sha256-{digest}'" in policy


def test_page_has_no_external_resources(trace):
    html = render_page(trace)
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", html)
    assert set(re.findall(r"https?://[^\s\"'<]+", html)) == {"http://www.w3.org/2000/svg"}


def test_title_is_never_markup(trace):
    html = render_page(trace)  # its title is a script with quotes
    assert html.count("<script") == 3
    assert "<title>a &lt;script&gt;&quot;cat&quot;&lt;/script&gt;</title>" in html


def cross_trace(layers, heads, tokens):
    rng = np.random.default_rng(0)
    text = [f"w{n}" for n in range(tokens)]
    layers = [
        rng.dirichlet(np.full(tokens, 0.05), size=(heads, tokens)).astype(np.float32)
        for _ in range(layers)
    ]
    return build_translation_trace(text, text, cross=layers)


@pytest.mark.parametrize(
    ("size", "part", "bits"),
    [((2, 3, 20), "weights", 16), ((5, 4, 120), "weights", 8), ((4, 4, 400), "summary", 8)],
)
def test_larger_traces_are_rounded_and_then_summarized(size, part, bits):
    first = page_payload(cross_trace(*size))["maps"][0]
    assert part in first
    array = first["weights"] if part == "weights" else first["summary"]["top_weights"]
    assert array["bits"] == bits


def test_page_is_saved_as_one_file(trace, tmp_path):
    save_page(trace, tmp_path / "a page.html", "encoder")
    assert (tmp_path / "a page.html").read_text("utf-8") == render_page(trace, "encoder")
    with pytest.raises(RegardError, match=r"cannot write .*: No such file or directory"):
        save_page(trace, tmp_path / "nowhere" / "a.html")


def test_page_of_tokens_with_lone_surrogates_is_saved(tmp_path):
    trace = build_translation_trace(["\ud800", "cat"], ["\udfff"], cross=[[[[0.25, 0.75]]]])
    save_page(trace, tmp_path / "look.html")
    html = (tmp_path / "look.html").read_text(encoding="utf-8")
    assert "\\ud800" in html and "\\udfff" in html


def test_javascript_tests_pass():
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed, so the viewer's modules were not tested")
    tests = sorted((Path(__file__).parent / "static").glob("*.test.mjs"))
    ran = subprocess.run([node, "--test", *tests], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-4000:]


def test_javascript_modules_are_documented_and_use_no_inner_html():
    modules = [*STATIC_FOLDER.glob("*.js")]
    assert modules
    for module in modules:
        text = module.read_text("utf-8")
        assert text.startswith("/** "), f"{module.name} has no description"
        assert text.count("\n") < 250, f"{module.name} is too long"
        assert "innerHTML" not in text and "insertAdjacentHTML" not in text
