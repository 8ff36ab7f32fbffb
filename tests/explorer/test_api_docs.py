import json
import re
from html.parser import HTMLParser

from regard.web.api_docs import render_api_docs


def test_page_contains_every_operation_and_schema(client):
    openapi = client.get("/openapi.json").json()
    response = client.get("/docs")
    assert response.headers["content-type"].startswith("text/html")
    for path, methods in openapi["paths"].items():
        for method in methods:
            assert f"<code>{method.upper()} {path}</code>" in response.text
    for schema in openapi["components"]["schemas"]:
        assert f'id="{schema}"' in response.text
    for name in re.findall(r'href="#(\w+)"', response.text):
        assert f'id="{name}"' in response.text


def test_page_has_no_scripts_and_no_external_resources(client):
    html = client.get("/docs").text
    assert "<script" not in html and "style=" not in html
    assert re.findall(r'(?:src|href)="([^#"][^"]*)"', html) == ["/openapi.json"]


def test_markup_in_the_openapi_document_is_escaped():
    markup = "<img src=x onerror=alert(1)>"
    schema = {"properties": {markup: {"enum": [markup]}}, "description": markup}
    operation = {"description": markup, "responses": {"200": {"description": markup}}}
    openapi = {
        "info": {"title": markup, "version": markup, "summary": markup},
        "paths": {markup: {"get": operation}},
        "components": {"schemas": {markup: schema | {"required": [markup]}}},
    }
    tags = []

    class TagCollector(HTMLParser):
        def handle_starttag(self, tag, attributes):
            tags.append(tag)

    TagCollector().feed(render_api_docs(json.loads(json.dumps(openapi))))
    assert "img" not in tags and "h1" in tags
