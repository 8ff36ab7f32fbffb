import sys
from html import unescape
from types import SimpleNamespace

import pytest
import torch

import regard
from regard import RegardError, show
from regard.viz import TraceView, render_head, render_page


def test_html_of_a_view_is_the_page_in_a_sandboxed_frame(trace):
    html = TraceView(trace, "cross", 1)._repr_html_()
    assert html.startswith('<iframe sandbox="allow-scripts allow-downloads" srcdoc="')
    assert "allow-same-origin" not in html
    assert unescape(html.split('srcdoc="')[1].split('"')[0]) == render_page(trace, "cross", 1)


def test_title_cannot_escape_the_frame(trace):
    html = TraceView(trace)._repr_html_()  # its title holds a script and quotes
    assert html.count("<") == html.count(">") == 2
    assert html.count('"') == 2 * 5


def test_repr_of_a_view_is_the_terminal_rendering(trace, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert repr(TraceView(trace, "encoder", head=1)) == render_head(trace, "encoder", head=1)


def test_show_prints_in_a_script(trace, capsys):
    assert show(trace, kind="encoder", head=1) is None
    assert capsys.readouterr().out == render_head(trace, "encoder", head=1) + "\n"
    trace.show(kind="encoder", head=1)
    assert capsys.readouterr().out == render_head(trace, "encoder", head=1) + "\n"


@pytest.mark.parametrize("shell", [None, SimpleNamespace()], ids=["no shell", "terminal"])
def test_show_prints_in_ipython_without_a_kernel(trace, capsys, monkeypatch, shell):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    show(trace)
    assert capsys.readouterr().out == render_head(trace) + "\n"


def test_show_displays_in_a_notebook_and_does_not_print_the_head(trace, capsys, displayed):
    show(trace, kind="cross", layer=1, head=1, height=300)
    (view,) = displayed
    assert (view.kind, view.layer, view.head, view.height) == ("cross", 1, 1, 300)
    assert render_head(trace) not in capsys.readouterr().out


def test_show_takes_a_capture(capsys):
    model = regard.MultiHeadAttention(12, heads=3)
    with regard.watch(model) as capture:
        model(torch.randn(1, 4, 12))
    show(capture, head=2)
    assert capsys.readouterr().out == render_head(capture.trace(), head=2) + "\n"


@pytest.mark.parametrize("where", ["notebook", "script"])
def test_show_refuses_a_missing_layer_at_once(trace, where, request):
    shown = request.getfixturevalue("displayed") if where == "notebook" else []
    with pytest.raises(RegardError, match=r"no layer 9 in cross"):
        show(trace, kind="cross", layer=9)
    assert shown == []


def test_show_takes_a_run_and_a_sentence(tiny_run, capsys):
    run = regard.load(tiny_run)
    show(run, "the old cat", kind="encoder", layer=0, head=1)
    expected = render_head(run.trace("the old cat"), "encoder", 0, 1)
    assert capsys.readouterr().out == expected + "\n"
    with pytest.raises(RegardError, match="show needs a sentence for a run"):
        show(run)


def test_show_refuses_a_text_of_a_trace(trace):
    with pytest.raises(RegardError, match="text is for a run"):
        show(trace, "the old cat")


def test_show_names_what_it_takes():
    with pytest.raises(RegardError, match="show needs a Trace.* but got list"):
        show([[0.5, 0.5]])
