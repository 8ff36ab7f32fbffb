import math

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode

from helpers.explorer import SCRIPT_PATH, error_message
from regard.explorer import (
    RunRegistry,
    ServerAddress,
    TraceRegistry,
    create_app,
    secure_app,
    traces,
)
from regard.explorer.playground import playground_options
from regard.explorer.schemas import LIMITS
from regard.explorer.static_files import STATIC
from regard.runs import DEMO_MODEL, find_run

JSON_OPERATIONS = {("POST", "/api/translate"), ("POST", "/api/traces"), ("POST", "/api/attend")}
OPERATIONS = JSON_OPERATIONS | {
    ("GET", "/api/runs"),
    ("GET", "/api/runs/{run}/log"),
    ("GET", "/api/runs/{run}/checkpoints"),
    ("GET", "/api/traces"),
    ("GET", "/api/traces/{name}"),
    ("POST", "/api/traces/open"),
    ("POST", "/api/traces/contents"),
}
# operations without parameters, or with a body of any bytes, have no invalid requests
FUZZED = [
    (operation, mode)
    for operation in sorted(OPERATIONS)
    for mode in GenerationMode
    if "{" in operation[1] or operation in JSON_OPERATIONS or mode is GenerationMode.POSITIVE
]


@pytest.fixture
def openapi_schema(tiny_run):
    """The OpenAPI document for schemathesis, with the app behind it."""
    app = create_app(RunRegistry([tiny_run]), TraceRegistry([]))
    secured = secure_app(app, ServerAddress("testserver", 80))
    schema = schemathesis.openapi.from_asgi("/openapi.json", secured)
    schema.config.request_timeout = 300
    # what no schema can express, such as equal widths of vectors, is rejected with 422
    schema.config.checks.positive_data_acceptance.expected_statuses = ["2xx", "404", "422"]
    return schema


@pytest.mark.parametrize(("operation", "mode"), FUZZED)
def test_fuzzed_responses_conform_to_openapi(openapi_schema, unchecked, operation, mode):
    method, path = operation
    is_valid = mode is GenerationMode.POSITIVE
    known = {"path_parameters": {"run": "tiny"}} if is_valid and "{run}" in path else {}

    @given(openapi_schema[path][method].as_strategy(mode, **known))
    @settings(max_examples=15, suppress_health_check=list(HealthCheck))
    def check(case):
        if is_valid and method == "POST" and isinstance(case.body, dict) and "run" in case.body:
            case.body["run"] = "tiny"
        case.call_and_validate()

    check()


def test_openapi_describes_every_operation_and_error(client):
    paths = client.get("/openapi.json").json()["paths"]
    assert {(method.upper(), path) for path in paths for method in paths[path]} == OPERATIONS
    for methods in paths.values():
        for operation in methods.values():
            statuses = {"200", "400", "401", "403", "404", "413", "422", "503"}
            assert statuses <= set(operation["responses"])
            assert operation["description"].endswith(".")


def test_runs_come_with_limits_and_playground_options(client):
    body = client.get("/api/runs").json()
    assert [run["name"] for run in body["runs"]] == ["tiny"]
    assert body["playground"] == playground_options()
    assert body["limits"] == LIMITS.model_dump()


def test_runs_of_the_same_name_get_distinct_names(make_client, tiny_run, run_copy):
    client = make_client(tiny_run, run_copy, tiny_run)
    names = [run["name"] for run in client.get("/api/runs").json()["runs"]]
    assert names == ["tiny", "copy", "tiny-2"]
    for name in names:
        response = client.post("/api/translate", json={"run": name, "text": "the cat"})
        assert len(response.json()["translations"]) == 1


def test_words_that_the_phrasebook_lacks_are_named(make_client):
    client = make_client(find_run(DEMO_MODEL))

    def unseen(text):
        response = client.post("/api/translate", json={"run": DEMO_MODEL, "text": text})
        return response.json()["unseen_words"]

    assert unseen("The keyboard is <b>on</b> the table.") == ["keyboard", "b"]
    assert unseen("The cat sleeps.") == unseen(" ") == []


def test_index_page_is_served(client):
    response = client.get("/")
    assert response.status_code == 200
    assert response.text == (STATIC / "index.html").read_text("utf-8")
    assert response.headers["content-type"].startswith("text/html")


def test_javascript_modules_are_served_with_their_media_type(client):
    response = client.get(SCRIPT_PATH)
    assert response.status_code == 200
    media_type = response.headers["content-type"].split(";")[0]
    assert media_type in ("text/javascript", "application/javascript")


@pytest.mark.parametrize("path", ["/viz/../page.py", "/viz/..%2fpage.py", "/static/%2e%2e/app.py"])
def test_path_traversal_out_of_static_folders_is_404(client, path):
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_result_that_json_cannot_represent_is_422(client, monkeypatch, value):
    monkeypatch.setattr(traces, "open_upload", lambda *_: {"maps": [{"heads": [value]}]})
    message = error_message(client.post("/api/traces/open", content=b"{}"), 422)
    assert message == "the result contains NaN or infinity, which JSON cannot represent."


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_head_request_has_the_headers_of_get(client, path):
    head, get = client.head(path), client.get(path)
    assert head.status_code == 200
    assert head.headers["content-type"] == get.headers["content-type"]
    assert head.headers["content-length"] == str(len(get.content))
