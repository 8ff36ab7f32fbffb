import re

import pytest
from starlette.testclient import TestClient

from regard.explorer import app as app_file

JSON = {"content-type": "application/json"}
STRANGE = {
    "torn": ('{"run":', 400),
    "not JSON": ("<xml/>", 400),
    "nothing": ("", 422),
    "NaN": ("NaN", 422),
    "a list": ("[]", 422),
    "a deep list": ("[" * 100_000, 400),
    "a deep object": ('{"a":' * 50_000, 400),
    "a number without end": ('{"run": "small", "text": "a", "beam_size": 1e999}', 422),
    "a number that is none": ('{"run": "small", "text": "a", "beam_size": NaN}', 422),
    "a number too long to read": (
        '{"run": "small", "text": "a", "beam_size": %s}' % ("9" * 5000),
        400,
    ),
    "half a surrogate pair": ('{"run": "small", "text": "\\ud800"}', 422),
    "half a surrogate pair as a key": ('{"run": "small", "text": "a", "\\ud800": 1}', 422),
    "NUL": ('{"run": "small", "text": "a\\u0000b"}', 422),
    "a wrong type": ('{"run": "small", "text": {"a": 1}}', 422),
    "a null": ('{"run": null, "text": "a"}', 422),
    "an unknown run": ('{"run": "</script><img src=x onerror=alert(1)>", "text": "a"}', 404),
    "a path as a run": ('{"run": "../small", "text": "a"}', 404),
    "bytes that are not UTF-8": (b'{"run": "\xff", "text": "a"}', 400),
}


@pytest.mark.parametrize("name", STRANGE)
def test_strange_requests_get_one_sentence(client, refused, name):
    content, status = STRANGE[name]
    refused(client.post("/api/translate", content=content, headers=JSON), status)


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"text": 5}, "text must be a valid string."),
        ({"beam_size": 0}, "beam_size must be greater than or equal to 1."),
        ({"colour": "red"}, "colour is not known here."),
        ({"text": "a\0"}, "text must be text without NUL."),
    ],
)
def test_a_sentence_says_where_and_what_would_do(client, refused, parts, sentence):
    form = {"run": "small", "text": "the cat"} | parts
    assert refused(client.post("/api/translate", json=form), 422) == sentence


def test_what_is_missing_is_named(client, refused):
    assert refused(client.post("/api/translate", json={"run": "a"}), 422) == "text is needed."
    deep = {"queries": [[0.5], ["x"]], "keys": [[0.5]], "score": "dot"}
    assert refused(client.post("/api/attend", json=deep), 422) == (
        "queries.1.0 must be a valid number."
    )


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded"])
def test_a_form_that_any_site_could_send_is_not_read(client, refused, kind):
    content = '{"run": "small", "text": "the cat"}'
    refused(client.post("/api/translate", content=content, headers={"content-type": kind}), 422)


@pytest.mark.parametrize("path", ["/nothing", "/api", "/api/nothing", "/static/../app.py"])
def test_an_unknown_address_is_told_of(client, refused, path):
    assert refused(client.get(path), 404) == "there is nothing at this address."


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("GET", "/api/translate", "POST"), ("DELETE", "/api/runs", "GET"), ("POST", "/", "GET, HEAD")],
)
def test_a_wrong_method_is_told_of(client, refused, method, path, allowed):
    answer = client.request(method, path)
    refused(answer, 405)
    assert sorted(answer.headers["allow"].split(", ")) == allowed.split(", ")


def test_a_mistake_of_ours_is_one_sentence_here_and_a_traceback_in_the_log(
    client, refused, monkeypatch
):
    def fail(*_):
        raise ZeroDivisionError("a secret of ours")

    monkeypatch.setattr(app_file.inference, "translations", fail)
    answer = client.post("/api/translate", json={"run": "small", "text": "the cat"})
    assert refused(answer, 500) == "the server made a mistake; its log says which."
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    raising = TestClient(client.app, base_url=str(client.base_url))
    with pytest.raises(ZeroDivisionError):  # what the server writes into its log
        raising.post("/api/translate", json={"run": "small", "text": "the cat"})


def test_markup_comes_back_as_text(client):
    text = "</script><img src=x onerror=alert(1)>"
    form = {"run": "small", "source": text, "target": text}
    answer = client.post("/api/traces", json=form)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    told = answer.json()
    assert told["title"] == text
    for side in ("source", "target"):
        pieces = told["tokens"][side]["pieces"][1 if side == "target" else 0 :]
        spelled = re.sub(r"<0x(..)>", lambda byte: chr(int(byte[1], 16)), "".join(pieces))
        assert spelled.strip() == text


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
def test_strange_letters_are_letters(client, text):
    answer = client.post("/api/traces", json={"run": "small", "source": text, "target": text})
    assert answer.status_code == 200 and answer.json()["title"] == text
    assert client.post("/api/translate", json={"run": "small", "text": text}).status_code == 200
