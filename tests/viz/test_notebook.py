from html import unescape

import pytest

from regard import RegardError, show
from regard.viz import render_head, render_page


def test_html_of_a_view_is_the_page_in_a_sandboxed_frame(trace):
    html = show(trace, "cross", 1)._repr_html_()
    assert html.startswith('<iframe sandbox="allow-scripts allow-downloads" srcdoc="')
    assert "allow-same-origin" not in html
    assert unescape(html.split('srcdoc="')[1].split('"')[0]) == render_page(trace, "cross", 1)


def test_title_cannot_escape_the_frame(trace):
    html = show(trace)._repr_html_()  # its title holds a script and quotes
    assert html.count("<") == html.count(">") == 2
    assert html.count('"') == 2 * 5


def test_repr_of_a_view_is_the_terminal_rendering(trace, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert repr(show(trace, "encoder", head=1)) == render_head(trace, "encoder", head=1)


def test_show_refuses_a_missing_layer_at_once(trace):
    with pytest.raises(RegardError, match=r"no layer of cross with number 9"):
        show(trace, "cross", 9)
