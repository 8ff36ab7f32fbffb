"""The API reference at /docs: static HTML from the OpenAPI document, without scripts or CDN."""

from html import escape
from typing import Any


def render_api_docs(openapi: dict[str, Any]) -> str:
    """Return the HTML page for an OpenAPI document."""
    info = openapi["info"]
    operations = "".join(
        _render_operation(method, path, operation)
        for path, methods in openapi["paths"].items()
        for method, operation in methods.items()
    )
    schemas = "".join(
        _render_schema(name, schema) for name, schema in openapi["components"]["schemas"].items()
    )
    title = escape(f"{info['title']} {info['version']}")
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"></head>\n'
        f"<body>\n<h1>{title}</h1>\n<p>{escape(info.get('summary', ''))} "
        'Machine-readable: <a href="/openapi.json">openapi.json</a>.</p>\n'
        f"<h2>Operations</h2>\n{operations}<h2>Schemas</h2>\n{schemas}</body>\n</html>\n"
    )


def _render_operation(method: str, path: str, operation: dict[str, Any]) -> str:
    parameters = [
        f"<code>{escape(parameter['name'])}</code>, in the {escape(parameter['in'])}"
        for parameter in operation.get("parameters", [])
    ]
    request = parameters + _render_contents(operation.get("requestBody", {}))
    responses = [
        f"{escape(status)}: {escape(response['description'])} "
        f"{' '.join(_render_contents(response))}"
        for status, response in operation["responses"].items()
    ]
    return (
        f"<h3><code>{method.upper()} {escape(path)}</code></h3>\n"
        f"<p>{escape(operation.get('description', ''))}</p>\n"
        f"<p>Request:</p>{_render_list(request or ['no parameters'])}"
        f"<p>Responses:</p>{_render_list(responses)}"
    )


def _render_contents(body: dict[str, Any]) -> list[str]:
    return [
        f"{_render_type(content['schema'])} as {escape(media_type)}"
        for media_type, content in body.get("content", {}).items()
    ]


def _render_schema(name: str, schema: dict[str, Any]) -> str:
    required = schema.get("required", [])
    fields = [
        f"<code>{escape(field)}</code>: {_render_type(kind)}"
        f"{'' if field in required else ', optional'}"
        for field, kind in schema.get("properties", {}).items()
    ]
    description = escape(schema.get("description", ""))
    return (
        f'<h3 id="{escape(name)}">{escape(name)}</h3>\n<p>{description}</p>{_render_list(fields)}'
    )


def _render_type(schema: dict[str, Any]) -> str:
    """Return the type of a value, with a link if it is a schema of its own."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(map(_render_type, schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(escape(repr(value)) for value in schema["enum"])
    if "const" in schema:
        return escape(repr(schema["const"]))
    if schema.get("type") == "array":
        return f"list of ({_render_type(schema.get('items', {}))})"
    return escape(str(schema.get("type", "any")))


def _render_list(items: list[str]) -> str:
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>\n"
