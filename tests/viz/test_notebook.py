from html import unescape

import pytest

from regard.errors import RegardError
from regard.viz.notebook import show
from regard.viz.page import render_page
from regard.viz.text import render_head


def test_html_is_the_page_in_a_sandboxed_frame(trace):
    html = show(trace, "cross", 1)._repr_html_()
    assert html.startswith('<iframe sandbox="allow-scripts allow-downloads" srcdoc="')
    assert "allow-same-origin" not in html
    assert unescape(html.split('srcdoc="')[1].split('"')[0]) == render_page(trace, "cross", 1)


def test_a_title_cannot_leave_the_frame(trace):
    html = show(trace)._repr_html_()  # its title holds a script and quotes
    assert html.count("<") == html.count(">") == 2
    assert html.count('"') == 2 * 5


def test_text_is_the_terminal_picture(trace, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert repr(show(trace, "encoder", head=1)) == render_head(trace, "encoder", head=1)


def test_what_is_not_there_is_refused_when_asked_for(trace):
    with pytest.raises(RegardError, match=r"no layer of cross has the number 9"):
        show(trace, "cross", 9)
