"""The notebook widget: its traits in Python, and its module in Chromium with a minimal host."""

import json
import re
import sys

import pytest

import regard
from regard import RegardError
from regard.trace import build_translation_trace
from regard.viz import TraceView, notebook, page_payload
from regard.viz.js_bundle import escape_json


@pytest.fixture
def widget_of():
    """The class of widgets; skip where anywidget is not installed."""
    pytest.importorskip("anywidget", reason="anywidget is not installed")
    return regard.viz.AttentionWidget


def test_widget_opens_at_a_head_and_holds_what_a_page_holds(trace, widget_of):
    widget = widget_of(trace, "cross", -1, 3)
    assert (widget.kind, widget.layer, widget.head) == ("cross", 2, 3)
    assert widget.get_state()["_payload"] == page_payload(trace)
    assert (widget.locked_row, widget.locked_label) == (None, None)
    assert repr(widget) == "AttentionWidget(cross, layer 2, head 3)"


def test_traits_reach_the_front_end_and_come_back(trace, widget_of):
    widget, other = (widget_of(trace, "cross", 0, 0) for _ in range(2))
    sent = []
    widget.observe(lambda change: sent.append((change["name"], change["new"])))
    widget.layer = -1
    assert sent == [("layer", 2)] and "layer" in widget.get_state()
    widget.set_state({"head": 3, "locked_row": 2, "locked_label": "chat"})  # as a click does
    assert (widget.head, widget.locked_row, widget.locked_label) == (3, 2, "chat")
    assert (other.layer, other.head, other.locked_row) == (0, 0, None)


def test_another_kind_resets_what_does_not_fit(trace, widget_of):
    widget = widget_of(trace, "cross", 2, 3)
    widget.locked_row = 1
    widget.kind = "self"
    assert (widget.kind, widget.layer, widget.head) == ("encoder", 0, 0)
    assert widget.locked_row is None


def test_trait_that_names_no_head_is_refused_and_stays(unchecked, trace, widget_of):
    widget = widget_of(trace, "cross", 0, 0)
    for name, value, message in [
        ("kind", "decodr", "decoder"),
        ("layer", 9, "no layer 9 in cross. Choose from: 0, 1, 2."),
        ("head", 2, "there is no head 2 in cross"),
        ("locked_row", 4, "locked_row must be None or from 0 to 3, but it is 4"),
        ("rows", "both", "rows must be 'output' or 'input', but it is 'both'"),
    ]:
        before = getattr(widget, name)
        with pytest.raises(RegardError, match=message):
            setattr(widget, name, value)
        assert getattr(widget, name) == before


def test_another_trace_replaces_the_first(trace, widget_of):
    widget = widget_of(trace, "encoder")
    widget.locked_row = 4
    widget.trace = other = build_translation_trace("ab", "x", cross=[[[[0.5, 0.5]]]])
    assert widget.trace is other and widget.kind == "cross" and widget.locked_row is None
    assert widget.get_state()["_payload"] == page_payload(other)


def test_styles_apply_to_widgets_only(widget_of):
    style = re.sub(r"/\*.*?\*/", "", widget_of._css, flags=re.DOTALL)
    assert style.startswith(".regard-widget {") and style.rstrip().endswith("}")
    depths = [0]
    for character in style:
        depths.append(depths[-1] + {"{": 1, "}": -1}.get(character, 0))
    assert depths.index(0, depths.index(1)) == len(style.rstrip())  # one rule around all others
    assert not re.search(r":root|(?<![-\w])(html|body)\b|@import|url\(", style)


def test_module_imports_nothing(widget_of):
    code = re.sub(r"/\*.*?\*/", "", widget_of._esm, flags=re.DOTALL)
    assert not re.search(r"\bimport\b|https?://(?!www\.w3\.org)|innerHTML", code)


def test_show_displays_a_widget_where_there_is_anywidget(trace, displayed, widget_of):
    trace.show(kind="cross", layer=1, head=1)
    (view,) = displayed
    assert isinstance(view, widget_of)
    assert (view.kind, view.layer, view.head) == ("cross", 1, 1)


def test_show_displays_the_page_and_names_the_extra_without_anywidget(
    trace, displayed, monkeypatch, capsys
):
    monkeypatch.setattr(notebook, "find_spec", lambda name: None)
    notebook._mention_widget.cache_clear()
    for _ in range(2):
        trace.show(kind="cross", layer=1, head=1)
    assert [view._repr_html_() for view in displayed] == 2 * [
        TraceView(trace, "cross", 1, 1)._repr_html_()
    ]
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 and "pip install 'regard[notebook]'" in lines[0]


def test_widget_without_anywidget_is_a_user_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "regard.viz.widget", raising=False)
    with pytest.raises(RegardError, match=r"needs anywidget, .*: pip install 'regard\[notebook\]'"):
        _ = regard.viz.AttentionWidget


# A host as the specification of anywidget's front-end modules describes it. `fromPython` stands for
# a change that comes from the kernel; `saved` holds what was sent there.
HOST = """
<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><style>%(style)s</style></head>
<body><button id="own">a button of the notebook</button><div id="one"></div><div id="two"></div>
<script type="application/json" id="states">%(states)s</script>
<script type="application/json" id="module">%(module)s</script>
<script type="module">
class Model {
  constructor(state) { this.state = state; this.changed = {}; this.saved = {}; this.handlers = []; }
  get(name) { return this.state[name]; }
  set(name, value) {
    if (this.state[name] === value) return;
    this.state[name] = this.changed[name] = value;
    this.trigger(`change:${name}`);
  }
  save_changes() { Object.assign(this.saved, this.changed); this.changed = {}; }
  on(event, handler) { this.handlers.push([event, handler]); }
  off(event, handler) {
    this.handlers = this.handlers.filter(([e, h]) => e !== event || h !== handler);
  }
  trigger(event) { for (const [e, handler] of [...this.handlers]) if (e === event) handler(); }
  fromPython(state) {
    Object.assign(this.state, state);
    for (const name of Object.keys(state)) this.trigger(`change:${name}`);
  }
}
const read = (id) => JSON.parse(document.getElementById(id).textContent);
const url = URL.createObjectURL(new Blob([read("module")], { type: "text/javascript" }));
const { default: widget } = await import(url);
window.models = read("states").map((state) => new Model(state));
window.removals = window.models.map((model, n) =>
  widget.render({ model, el: document.getElementById(["one", "two"][n]) }));
</script></body></html>
"""


@pytest.fixture
def open_widgets(open_page, widget_of):
    """Open two widgets in a page without network."""

    def open_both(*widgets, **options):
        names = (
            "_payload",
            "kind",
            "layer",
            "head",
            "rows",
            "locked_row",
            "locked_label",
            "height",
        )
        states = [{name: getattr(widget, name) for name in names} for widget in widgets]
        content = {"states": escape_json(states), "module": escape_json(widget_of._esm)}
        return open_page(HOST % {"style": widget_of._css, **content}, **options)

    return open_both


def text_of(window, widget, selector):
    window.evaluate("() => new Promise((r) => requestAnimationFrame(() => setTimeout(r)))")
    return window.locator(f"#{widget} {selector}").inner_text()


def pixels(window, widget):
    text_of(window, widget, ".caption")
    return window.locator(f"#{widget} .canvas-frame").screenshot()


@pytest.mark.browser
def test_python_selects_the_head_of_one_widget_among_two(trace, open_widgets, widget_of):
    window = open_widgets(
        widget_of(trace, "cross", 0, 0, height=500), widget_of(trace, "encoder", height=500)
    )
    first, second = pixels(window, "one"), pixels(window, "two")
    window.evaluate("models[0].fromPython({layer: 2, head: 3})")
    assert "layer 2, head 3" in text_of(window, "one", ".caption")
    assert pixels(window, "one") != first
    assert pixels(window, "two") == second
    window.evaluate("models[0].fromPython({kind: 'decoder', layer: 0, head: 0})")
    assert text_of(window, "one", ".tab[aria-selected=true]").startswith("Decoder")
    assert window.evaluate("[models[0].saved, models[1].saved]") == [{}, {}]  # nothing to send back
    assert window.errors == []
    assert [url for url in window.requests if not url.startswith(("file:", "blob:"))] == []


@pytest.mark.browser
def test_clicked_row_reaches_python_and_python_locks_a_row(trace, open_widgets, widget_of):
    window = open_widgets(
        widget_of(trace, "cross", 0, 0, height=500), widget_of(trace, "cross", 0, 0, height=500)
    )
    canvas = window.locator("#two .main-canvas")
    canvas.focus()
    for _ in range(3):
        canvas.press("ArrowDown")
    state = window.evaluate("models[1].saved")
    pieces = trace.tokens[trace.layers("cross")[0].queries].pieces
    assert state["locked_row"] == 2 and state["locked_label"] in pieces[2]
    canvas.press("Escape")
    assert window.evaluate("models[1].saved.locked_row") is None
    box = canvas.bounding_box()
    canvas.click(position={"x": box["width"] / 2, "y": box["height"] / 2})
    clicked = window.evaluate("models[1].saved.locked_row")
    assert clicked in range(len(pieces))
    assert window.evaluate("models[0].saved") == {}
    row = (clicked + 1) % len(pieces)
    window.evaluate("row => models[1].fromPython({locked_row: row})", row)
    assert text_of(window, "two", ".description").endswith("Locked.")
    assert window.evaluate("models[1].get('locked_label')") in pieces[row]
    window.evaluate("models[1].fromPython({locked_row: null})")
    assert not text_of(window, "two", ".description").endswith("Locked.")


@pytest.mark.browser
def test_head_chosen_with_keys_reaches_python(trace, open_widgets, widget_of):
    window = open_widgets(
        widget_of(trace, "cross", 0, 0, height=500), widget_of(trace, "cross", 0, 0, height=500)
    )
    window.locator("#one .tab").first.click()
    assert window.evaluate("models[0].saved") == {"kind": "encoder"}
    assert window.evaluate("models[1].saved") == {}


@pytest.mark.browser
def test_another_trace_is_shown_and_a_removed_view_gets_no_events(trace, open_widgets, widget_of):
    window = open_widgets(
        widget_of(trace, "cross", 0, 0, height=500), widget_of(trace, "cross", 0, 0, height=500)
    )
    other = build_translation_trace("ab", "x", cross=[[[[0.5, 0.5]]]], title="<b>other</b>")
    window.evaluate(
        "p => models[0].fromPython({_payload: p})", json.loads(json.dumps(page_payload(other)))
    )
    assert text_of(window, "one", "h2") == "<b>other</b>"
    window.evaluate("removals[1]()")
    window.evaluate("models[1].fromPython({layer: 1})")
    assert window.evaluate("models[1].handlers.length") == 0
    assert window.errors == []


@pytest.mark.browser
def test_widget_follows_the_theme_of_the_notebook_and_leaves_its_styles(
    trace, open_widgets, widget_of
):
    window = open_widgets(widget_of(trace), widget_of(trace, "encoder"), color_scheme="light")
    theme = "getComputedStyle(document.querySelector('.viewer')).getPropertyValue('--theme').trim()"
    assert window.evaluate(theme) == "light"
    window.evaluate("document.body.dataset.jpThemeLight = 'false'")
    assert window.evaluate(f"new Promise((r) => setTimeout(() => r({theme})))") == "dark"
    style = "getComputedStyle(document.getElementById('own'))"
    assert window.evaluate(f"{style}.borderTopStyle") == "outset"
    assert window.evaluate("getComputedStyle(document.body).marginTop") == "8px"


@pytest.mark.browser
def test_rows_are_named_from_python_and_from_the_page(trace, open_widgets, widget_of):
    widgets = widget_of(trace, "cross", 0, 0, rows="input"), widget_of(trace, "cross", 0, 0)
    window = open_widgets(*widgets)
    pressed = "#%s .rows-field [aria-pressed=true]"
    assert window.locator(pressed % "one").inner_text() == "input words"
    window.evaluate("models[1].fromPython({rows: 'input'})")
    assert text_of(window, "two", ".rows-field [aria-pressed=true]") == "input words"
    window.locator("#one .rows-field .segment").first.click()
    assert window.evaluate("models[0].saved.rows") == "output"
