import json
import re
from html.parser import HTMLParser

from regard.explorer.api_docs import page


def test_every_operation_and_every_form_is_on_the_page(client):
    described = client.get("/openapi.json").json()
    answer = client.get("/docs")
    assert answer.headers["content-type"].startswith("text/html")
    for path, methods in described["paths"].items():
        for method in methods:
            assert f"<code>{method.upper()} {path}</code>" in answer.text
    for form in described["components"]["schemas"]:
        assert f'id="{form}"' in answer.text
    for name in re.findall(r'href="#(\w+)"', answer.text):
        assert f'id="{name}"' in answer.text


def test_the_page_fetches_nothing_and_runs_nothing(client):
    text = client.get("/docs").text
    assert "<script" not in text and "style=" not in text
    assert re.findall(r'(?:src|href)="([^#"][^"]*)"', text) == ["/openapi.json"]


def test_whatever_is_described_is_text():
    bad = "<img src=x onerror=alert(1)>"
    form = {"properties": {bad: {"enum": [bad]}}, "description": bad, "required": [bad]}
    described = {
        "info": {"title": bad, "version": bad, "summary": bad},
        "paths": {bad: {"get": {"description": bad, "responses": {"200": {"description": bad}}}}},
        "components": {"schemas": {bad: form}},
    }
    seen = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag, attributes):
            seen.append(tag)

    Tags().feed(page(json.loads(json.dumps(described))))
    assert "img" not in seen and "h1" in seen
