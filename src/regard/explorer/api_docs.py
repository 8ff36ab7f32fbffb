"""The API as a page to read: every operation, what it takes and gives. No script, no network."""

from html import escape
from typing import Any


def page(description: dict[str, Any]) -> str:
    """Write the page from an OpenAPI description."""
    about = description["info"]
    operations = "".join(
        _operation(method, path, operation)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    )
    forms = "".join(
        _form(name, form) for name, form in description["components"]["schemas"].items()
    )
    title = escape(f"{about['title']} {about['version']}")
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"></head>\n'
        f"<body>\n<h1>{title}</h1>\n<p>{escape(about.get('summary', ''))} "
        'For programs: <a href="/openapi.json">openapi.json</a>.</p>\n'
        f"<h2>What can be asked</h2>\n{operations}<h2>Forms</h2>\n{forms}</body>\n</html>\n"
    )


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    takes = [
        f"<code>{escape(each['name'])}</code>, in the {escape(each['in'])}"
        for each in operation.get("parameters", [])
    ]
    takes += _contents(operation.get("requestBody", {}))
    gives = [
        f"{escape(status)}: {escape(answer['description'])} {' '.join(_contents(answer))}"
        for status, answer in operation["responses"].items()
    ]
    return (
        f"<h3><code>{method.upper()} {escape(path)}</code></h3>\n"
        f"<p>{escape(operation.get('description', ''))}</p>\n"
        f"<p>Takes:</p>{_listed(takes or ['nothing'])}<p>Gives:</p>{_listed(gives)}"
    )


def _contents(part: dict[str, Any]) -> list[str]:
    return [
        f"{_kind(content['schema'])} as {escape(media)}"
        for media, content in part.get("content", {}).items()
    ]


def _form(name: str, form: dict[str, Any]) -> str:
    needed = form.get("required", [])
    fields = [
        f"<code>{escape(field)}</code>: {_kind(kind)}{'' if field in needed else ', if wanted'}"
        for field, kind in form.get("properties", {}).items()
    ]
    said = escape(form.get("description", ""))
    return f'<h3 id="{escape(name)}">{escape(name)}</h3>\n<p>{said}</p>{_listed(fields)}'


def _kind(schema: dict[str, Any]) -> str:
    """Say what a value is, with a link if it is a form."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(map(_kind, schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(escape(repr(value)) for value in schema["enum"])
    if "const" in schema:
        return escape(repr(schema["const"]))
    if schema.get("type") == "array":
        return f"list of ({_kind(schema.get('items', {}))})"
    return escape(str(schema.get("type", "anything")))


def _listed(items: list[str]) -> str:
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>\n"
