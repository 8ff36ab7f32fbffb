import json

import pytest
from prometheus_client.parser import text_string_to_metric_families

from helpers.explorer import error_message
from regard.errors import RegardError
from regard.models import Transformer
from regard.runs import load
from regard.serving import (
    DynamicBatcher,
    LanguagePair,
    QueueFullError,
    ServedRun,
    ServingLimits,
    TranslationService,
)
from regard.serving.schemas import MAX_ALTERNATIVES
from regard.serving.served_run import LoadedRun

EN_FR = LanguagePair("en", "fr")
TOKEN = "a-token-of-this-test"
REQUEST = {"q": "the cat sees the dog", "source": "en", "target": "fr"}


def samples(client):
    text = client.get("/metrics").text
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_text_and_list_are_translated_as_by_the_run(client, tiny_run):
    texts = ["the cat sees the dog", "", "a dog", " the old cat "]
    run = load(tiny_run, engine="torch")
    expected = [str(translation) for translation in run.translate(texts)]
    response = client.post("/translate", json={**REQUEST, "q": texts})
    assert response.json() == {"translatedText": expected}
    response = client.post("/translate", json={**REQUEST, "q": texts[0]})
    assert response.json() == {"translatedText": expected[0]}
    assert client.post("/translate", json={**REQUEST, "q": []}).json() == {"translatedText": []}


def test_alternatives_are_the_next_best_translations(client, tiny_run):
    best = [str(each) for each in load(tiny_run, engine="torch").translate("a dog", n_best=3)]
    body = {**REQUEST, "q": "a dog", "alternatives": 2}
    response = client.post("/translate", json=body).json()
    assert response == {"translatedText": best[0], "alternatives": best[1:]}
    response = client.post("/translate", json={**body, "q": ["a dog"]}).json()
    assert response == {"translatedText": [best[0]], "alternatives": [best[1:]]}


def test_alternatives_beyond_the_beam_size_of_the_server_enlarge_the_beam(make_client, tiny_run):
    run = load(tiny_run, engine="torch")
    best = [str(each) for each in run.translate("a dog", n_best=4, beam_size=4)]
    with make_client([ServedRun(tiny_run, EN_FR, "torch", beam_size=1)]) as client:
        response = client.post("/translate", json={**REQUEST, "q": "a dog", "alternatives": 3})
    assert response.json() == {"translatedText": best[0], "alternatives": best[1:]}


def test_lines_are_translated_one_by_one(client):
    lines = ["the cat", "", "a dog"]
    separate = client.post("/translate", json={**REQUEST, "q": lines}).json()["translatedText"]
    together = client.post("/translate", json={**REQUEST, "q": "\n".join(lines)}).json()
    assert together["translatedText"] == "\n".join(separate)


def test_form_that_is_not_percent_encoded_is_utf_8(client, monkeypatch):
    texts, encode = [], LoadedRun.encode
    monkeypatch.setattr(
        LoadedRun, "encode", lambda self, lines: texts.extend(lines) or encode(self, lines)
    )
    headers = {"content-type": "application/x-www-form-urlencoded"}
    for form in ("q=un café&source=en&target=fr", "q=un+caf%C3%A9&source=en&target=fr"):
        assert client.post("/translate", content=form.encode(), headers=headers).is_success
    assert texts == ["un café"] * 2


@pytest.mark.parametrize("empty", [{"format": None}, {"format": ""}, {"api_key": None}])
def test_empty_parameters_are_as_left_out(client, empty):
    response = client.post("/translate", json={**REQUEST, **empty})
    assert response.json() == client.post("/translate", json=REQUEST).json()


@pytest.mark.parametrize("path", ["/health", "/languages", "/metrics", "/docs", "/openapi.json"])
def test_head_is_get_without_the_body(client, path):
    get, head = client.get(path), client.head(path)
    assert (head.status_code, head.content) == (200, b"")
    if path != "/metrics":  # which count the requests
        assert head.headers == get.headers


def test_openapi_document_names_the_languages(client):
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    for name in ("LibreTranslateRequest", "LibreTranslateForm"):
        properties = schemas[name]["properties"]
        assert (properties["source"]["enum"], properties["target"]["enum"]) == (["en"], ["fr"])


def test_forms_are_equal_to_json(client):
    from_json = client.post("/translate", json={**REQUEST, "alternatives": 1}).json()
    assert client.post("/translate", data={**REQUEST, "alternatives": "1"}).json() == from_json
    several = client.post("/translate", data={**REQUEST, "q": [REQUEST["q"], "a dog"]}).json()
    assert several["translatedText"][0] == from_json["translatedText"]


@pytest.mark.parametrize("form", [{}, {"target": "fr"}], ids=["no body", "a form"])
def test_parameters_of_the_url_are_fields_of_a_form(make_client, form):
    with make_client(token=TOKEN) as client:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        expected = client.post("/translate", json=REQUEST, headers=headers).json()
        fields = {name: value for name, value in REQUEST.items() if name not in form}
        with_key = {**fields, "api_key": TOKEN}
        assert client.post("/translate", params=with_key, data=form).json() == expected
        error_message(client.post("/translate", params=fields, data=form), 401)


def test_parameters_of_the_url_do_not_change_a_json_request(client):
    expected = client.post("/translate", json=REQUEST).json()
    response = client.post("/translate", json=REQUEST, params={"q": "a dog", "target": "de"})
    assert response.json() == expected


def test_languages_list_targets(client, make_client, tiny_run):
    english = {"code": "en", "name": "English", "targets": ["fr"]}
    french = {"code": "fr", "name": "French", "targets": []}
    assert client.get("/languages").json() == [english, french]
    runs = [ServedRun(tiny_run, pair, "torch") for pair in (EN_FR, LanguagePair("fr", "en"))]
    with make_client(runs) as both:
        assert [each["targets"] for each in both.get("/languages").json()] == [["fr"], ["en"]]


def test_two_runs_of_the_same_languages_are_refused(tiny_run):
    with pytest.raises(RegardError, match="two have en:fr"):
        TranslationService([ServedRun(tiny_run, EN_FR, "torch")] * 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": "de"}, "de is not supported"),
        ({"source": "fr", "target": "en"}, r"English (en) is not available as a target language"),
        ({"source": "auto"}, "languages are not detected"),
        ({"q": None}, "q must be a text or a list of texts."),
        ({"q": [["nested"]]}, "q must be a text or a list of texts."),
        ({"q": ["a", 7]}, "q must be a text or a list of texts."),
        ({"q": 7}, "q must be a text or a list of texts."),
        ({"format": "html"}, "format must be 'text': HTML cannot be translated, so send q as"),
        ({"alternatives": True}, "alternatives must be a valid integer"),
        ({"alternatives": -1}, "alternatives must be greater than or equal to 0"),
        ({"alternatives": MAX_ALTERNATIVES + 1}, "alternatives must be less than or equal to 10"),
        ({"q": ["a"] * 1001}, "at most 1000 texts, but it has 1001"),
        ({"q": "a" * 20_001}, "at most 20000 characters, but it has 20001"),
        ({"q": "cat " * 1000}, "at most 512 tokens"),
        ({"source": "x" * 1000}, "source must have at most 16 characters"),
    ],
)
def test_invalid_request_is_400_with_one_sentence(client, change, message):
    assert message in error_message(client.post("/translate", json={**REQUEST, **change}), 400)


@pytest.mark.parametrize("missing", ["q", "source", "target"])
def test_missing_parameter_is_400_with_its_name(client, missing):
    body = {name: value for name, value in REQUEST.items() if name != missing}
    message = f"{missing} is required."
    assert error_message(client.post("/translate", json=body), 400) == message
    assert error_message(client.post("/translate", data=body), 400) == message


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[" * 100_000,
        b'{"q":' * 20_000,
        b'{"q": "\xff", "source": "en", "target": "fr"}',
        b"\x00" * 100,
    ],
)
@pytest.mark.parametrize("token", [None, TOKEN])
def test_malformed_body_is_400_or_401(make_client, body, token):
    with make_client(token=token) as client:
        response = client.post(
            "/translate", content=body, headers={"content-type": "application/json"}
        )
        message = error_message(response, 400 if token is None else 401)
        assert token is not None or "JSON" in message


@pytest.mark.parametrize("content_type", [None, "text/plain", "multipart/form-data; boundary=x"])
def test_body_of_another_type_is_400_with_the_type_to_send(client, content_type):
    headers = {} if content_type is None else {"content-type": content_type}
    response = client.post("/translate", content=json.dumps(REQUEST).encode(), headers=headers)
    message = "the body must be a JSON object, sent as Content-Type: application/json."
    assert error_message(response, 400) == message


@pytest.mark.parametrize(
    "text",
    ["\x00", "a\x00b", "\x01\x1b[31m\x7f", "\u202edog\u2066", "\ud800", "\U0001f408" * 40, "\r\r"],
)
def test_any_characters_are_translated_or_refused(client, text):
    body = json.dumps({**REQUEST, "q": text}).encode()  # ASCII, with a lone surrogate escaped
    headers = {"content-type": "application/json"}
    response = client.post("/translate", content=body, headers=headers)
    assert response.status_code in (200, 400), response.text
    assert list(response.json()) in (["translatedText"], ["error"])


def test_form_of_too_many_fields_is_400(client):
    headers = {"content-type": "application/x-www-form-urlencoded"}
    response = client.post("/translate", content=b"q=a&" * 5000, headers=headers)
    error_message(response, 400)


def test_too_large_body_is_413(make_client):
    with make_client(limits=ServingLimits(max_body_bytes=300)) as client:
        response = client.post("/translate", json={**REQUEST, "q": "a" * 300})
        assert "at most 300 bytes" in error_message(response, 413)


def test_token_is_accepted_as_bearer_and_as_api_key(make_client):
    with make_client(token=TOKEN) as client:
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        assert client.post("/translate", json=REQUEST, headers=bearer).status_code == 200
        assert client.post("/translate", json={**REQUEST, "api_key": TOKEN}).status_code == 200
        assert client.post("/translate", data={**REQUEST, "api_key": TOKEN}).status_code == 200
        assert client.get("/health").json() == {"status": "ok"}


@pytest.mark.parametrize("path", ["/translate", "/languages", "/metrics", "/docs", "/openapi.json"])
def test_wrong_token_is_401(make_client, path):
    with make_client(token=TOKEN) as client:
        for key in ("", "wrong", TOKEN + "x", 7, None, [TOKEN]):
            body, headers = {**REQUEST, "api_key": key}, {"Authorization": f"Bearer {key}"}
            method = "POST" if path == "/translate" else "GET"
            response = client.request(method, path, json=body, headers=headers)
            assert "token" in error_message(response, 401)
            assert response.headers["www-authenticate"] == "Bearer"


def test_other_host_and_origin_are_403(client):
    assert "evil.example" in error_message(
        client.get("/health", headers={"Host": "evil.example"}), 403
    )
    headers = {"Origin": "http://evil.example"}
    assert "evil" in error_message(client.post("/translate", json=REQUEST, headers=headers), 403)


def test_full_queue_is_503_with_retry_after(client, monkeypatch):
    async def refuse(self, key, items):
        raise QueueFullError

    monkeypatch.setattr(DynamicBatcher, "submit", refuse)
    response = client.post("/translate", json=REQUEST)
    assert "queue is full" in error_message(response, 503)
    assert response.headers["retry-after"] == "1"


def test_more_lines_than_the_queue_ever_holds_are_400(make_client):
    with make_client(max_queue_size=3) as client:
        for q in (["a"] * 4, "a\na\n\na"):
            response = client.post("/translate", json={**REQUEST, "q": q})
            message = "q must have at most 3 lines, but it has 4."
            assert error_message(response, 400) == message
        assert client.post("/translate", json={**REQUEST, "q": ["a"] * 3}).status_code == 200


def test_line_of_more_tokens_than_the_model_has_positions_is_400(client, monkeypatch):
    monkeypatch.setattr(Transformer, "max_length", 5)
    response = client.post("/translate", json={**REQUEST, "q": "the cat sees the dog" * 2})
    assert "at most 5 tokens, but one has" in error_message(response, 400)


def test_missed_deadline_is_503_with_retry_after(make_client):
    with make_client(limits=ServingLimits(timeout_seconds=0.0)) as client:
        response = client.post("/translate", json=REQUEST)
        assert "longer than 0 seconds" in error_message(response, 503)
        assert response.headers["retry-after"] == "5"


def test_metrics_count_requests_batches_and_sentences(client):
    client.post("/translate", json={**REQUEST, "q": ["the cat", "a dog", "a cat"]})
    client.post("/translate", json={**REQUEST, "target": "de"})
    client.get("/nothing")
    metrics = samples(client)
    assert metrics["regard_requests_total", "/translate", "200"] == 1
    assert metrics["regard_requests_total", "/translate", "400"] == 1
    assert metrics["regard_requests_total", "other", "404"] == 1
    assert metrics["regard_sentences_total", "en", "fr"] == 3
    assert metrics["regard_batch_sentences_sum",] == 3
    assert metrics["regard_request_seconds_count",] == 1
    assert metrics["regard_sentences_in_progress",] == 0


def test_documentation_names_every_operation(client):
    openapi = client.get("/openapi.json").json()
    page = client.get("/docs").text
    assert {"/translate", "/languages", "/health", "/metrics"} == set(openapi["paths"])
    assert all(path in page for path in openapi["paths"])
    body = openapi["paths"]["/translate"]["post"]["requestBody"]["content"]
    assert set(body) == {"application/json", "application/x-www-form-urlencoded"}
