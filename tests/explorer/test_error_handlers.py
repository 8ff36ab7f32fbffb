import re

import pytest
from starlette.testclient import TestClient

from helpers.explorer import error_message
from regard.explorer import inference

JSON = {"content-type": "application/json"}
MALFORMED = {
    "truncated": ('{"run":', 400),
    "not JSON": ("<xml/>", 400),
    "empty": ("", 422),
    "NaN": ("NaN", 422),
    "a list": ("[]", 422),
    "deeply nested list": ("[" * 100_000, 400),
    "deeply nested object": ('{"a":' * 50_000, 400),
    "infinite number": ('{"run": "tiny", "text": "a", "beam_size": 1e999}', 422),
    "NaN as a field": ('{"run": "tiny", "text": "a", "beam_size": NaN}', 422),
    "huge integer": ('{"run": "tiny", "text": "a", "beam_size": %s}' % ("9" * 5000), 400),
    "lone surrogate": ('{"run": "tiny", "text": "\\ud800"}', 422),
    "lone surrogate as a key": ('{"run": "tiny", "text": "a", "\\ud800": 1}', 422),
    "NUL": ('{"run": "tiny", "text": "a\\u0000b"}', 422),
    "wrong type": ('{"run": "tiny", "text": {"a": 1}}', 422),
    "null": ('{"run": null, "text": "a"}', 422),
    "unknown run": ('{"run": "</script><img src=x onerror=alert(1)>", "text": "a"}', 404),
    "path as a run": ('{"run": "../tiny", "text": "a"}', 404),
    "invalid UTF-8": (b'{"run": "\xff", "text": "a"}', 400),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_request_gets_one_sentence(client, name):
    content, status = MALFORMED[name]
    error_message(client.post("/api/translate", content=content, headers=JSON), status)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"text": 5}, "text must be a valid string."),
        ({"beam_size": 0}, "beam_size must be greater than or equal to 1."),
        ({"colour": "red"}, "colour is not a known field."),
        ({"text": "a\0"}, "text must not contain NUL characters."),
    ],
)
def test_validation_error_names_field_and_expectation(client, fields, message):
    body = {"run": "tiny", "text": "the cat"} | fields
    assert error_message(client.post("/api/translate", json=body), 422) == message


def test_missing_field_is_named(client):
    response = client.post("/api/translate", json={"run": "a"})
    assert error_message(response, 422) == "text is required."


def test_nested_field_is_named_by_its_path(client):
    body = {"queries": [[0.5], ["x"]], "keys": [[0.5]], "score": "dot"}
    response = client.post("/api/attend", json=body)
    assert error_message(response, 422) == "queries.1.0 must be a valid number."


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded"])
def test_media_type_of_a_cross_site_form_is_not_parsed(client, media_type):
    content = '{"run": "tiny", "text": "the cat"}'
    headers = {"content-type": media_type}
    error_message(client.post("/api/translate", content=content, headers=headers), 422)


@pytest.mark.parametrize("path", ["/nothing", "/api", "/api/nothing", "/static/../app.py"])
def test_unknown_path_is_404(client, path):
    assert error_message(client.get(path), 404) == "no such path."


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("GET", "/api/translate", "POST"), ("DELETE", "/api/runs", "GET"), ("POST", "/", "GET, HEAD")],
)
def test_wrong_method_is_405_with_allow_header(client, method, path, allowed):
    response = client.request(method, path)
    assert error_message(response, 405) == "method not allowed for this path."
    assert sorted(response.headers["allow"].split(", ")) == allowed.split(", ")


def test_unexpected_exception_is_500_without_details_and_reaches_the_log(client, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(inference, "translate_text", fail)
    response = client.post("/api/translate", json={"run": "tiny", "text": "the cat"})
    expected = "internal server error; the server's log has the details."
    assert error_message(response, 500) == expected
    assert response.headers["content-security-policy"].startswith("default-src 'none'")
    raising = TestClient(client.app, base_url=str(client.base_url))
    with pytest.raises(ZeroDivisionError, match="a secret"):  # uvicorn logs what reaches it
        raising.post("/api/translate", json={"run": "tiny", "text": "the cat"})


def test_markup_is_returned_as_json_text(client):
    text = "</script><img src=x onerror=alert(1)>"
    response = client.post("/api/traces", json={"run": "tiny", "source": text, "target": text})
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-content-type-options"] == "nosniff"
    trace = response.json()
    assert trace["title"] == f"{text} → {text}"
    for side in ("source", "target"):
        pieces = trace["tokens"][side]["pieces"][: -1 if side == "target" else None]
        decoded = re.sub(r"<0x(..)>", lambda byte: chr(int(byte[1], 16)), "".join(pieces))
        assert decoded.strip() == text


@pytest.mark.parametrize(
    "text",
    [
        "\u202eright to left\u202c",
        "e\u0301\u0301\u0301",
        "👩‍👩‍👧‍👦",
        "猫坐着",
        "\ufeff",
        "\x1b[31m",
        "a\r\nb",
    ],
)
def test_unusual_unicode_is_accepted_unchanged(client, text):
    response = client.post("/api/traces", json={"run": "tiny", "source": text, "target": text})
    assert response.status_code == 200 and response.json()["title"] == f"{text} → {text}"
    assert client.post("/api/translate", json={"run": "tiny", "text": text}).status_code == 200
