import math

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode

from regard.explorer import traces as saved
from regard.explorer.app import STATIC, create_app
from regard.explorer.middleware import Address, Door
from regard.explorer.playground import known
from regard.explorer.runs import Shelf
from regard.explorer.traces import Saved

FORMS = {("POST", "/api/translate"), ("POST", "/api/traces"), ("POST", "/api/attend")}
OPERATIONS = {
    ("GET", "/api/runs"),
    ("GET", "/api/runs/{run}/log"),
    ("GET", "/api/runs/{run}/checkpoints"),
    ("POST", "/api/translate"),
    ("GET", "/api/traces"),
    ("POST", "/api/traces"),
    ("GET", "/api/traces/{name}"),
    ("POST", "/api/traces/open"),
    ("POST", "/api/traces/contents"),
    ("POST", "/api/attend"),
}


# what takes nothing, or any bytes, cannot be asked wrongly
MODES = [
    (operation, mode)
    for operation in sorted(OPERATIONS)
    for mode in GenerationMode
    if "{" in operation[1] or operation in FORMS or mode is GenerationMode.POSITIVE
]


@pytest.fixture
def described(trained, line):
    """The description as a tester of APIs reads it, and the app that must keep to it."""
    door = Door(create_app(Shelf([trained]), Saved([]), line), Address("testserver", 80))
    schema = schemathesis.openapi.from_asgi("/openapi.json", door)
    schema.config.request_timeout = 300
    # what no form can say, such as vectors of one width, is refused too
    schema.config.checks.positive_data_acceptance.expected_statuses = ["2xx", "404", "422"]
    return schema


@pytest.mark.parametrize(("operation", "mode"), MODES)
def test_the_api_is_what_its_description_says(described, unchecked, operation, mode):
    method, path = operation
    right = mode is GenerationMode.POSITIVE
    known = {"path_parameters": {"run": "small"}} if right and "{run}" in path else {}

    @given(described[path][method].as_strategy(mode, **known))
    @settings(max_examples=15, suppress_health_check=list(HealthCheck))
    def holds(case):
        if right and method == "POST" and isinstance(case.body, dict) and "run" in case.body:
            case.body["run"] = "small"
        case.call_and_validate()

    holds()


def test_the_description_names_every_operation_and_every_refusal(client):
    paths = client.get("/openapi.json").json()["paths"]
    assert {(method.upper(), path) for path in paths for method in paths[path]} == OPERATIONS
    for methods in paths.values():
        for operation in methods.values():
            statuses = {"200", "400", "401", "403", "404", "413", "422", "503"}
            assert statuses <= set(operation["responses"])
            assert operation["description"].endswith(".")


def test_the_runs_come_with_limits_and_the_playgrounds_words(client):
    told = client.get("/api/runs").json()
    assert [run["name"] for run in told["runs"]] == ["small"]
    assert told["playground"] == known()


def test_several_runs_are_told_apart(visit, trained, copied):
    client = visit(trained, copied, trained)
    names = [run["name"] for run in client.get("/api/runs").json()["runs"]]
    assert names == ["small", "copy", "small-2"]
    for name in names:
        answer = client.post("/api/translate", json={"run": name, "text": "the cat"})
        assert len(answer.json()["translations"]) == 1


def test_the_page_is_served(client):
    answer = client.get("/")
    assert answer.status_code == 200 and answer.text == (STATIC / "index.html").read_text("utf-8")
    assert answer.headers["content-type"].startswith("text/html")


def test_the_pages_modules_are_served_as_what_they_are(client):
    answer = client.get("/viz/viewer.js")
    assert answer.status_code == 200
    assert answer.headers["content-type"].split(";")[0] in (
        "text/javascript",
        "application/javascript",
    )


@pytest.mark.parametrize("path", ["/viz/../page.py", "/viz/..%2fpage.py", "/static/%2e%2e/app.py"])
def test_no_other_file_of_the_package_is_served(client, path):
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_what_json_cannot_say_is_refused_in_a_sentence(client, refused, monkeypatch, odd):
    monkeypatch.setattr(saved, "opened", lambda *_: {"maps": [{"heads": [odd]}]})
    told = refused(client.post("/api/traces/open", content=b"{}"), 422)
    assert told.startswith("what came of it cannot be said in JSON: ")


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_the_head_of_a_page_is_that_of_the_page(client, path):
    head, whole = client.head(path), client.get(path)
    assert head.status_code == 200
    assert head.headers["content-type"] == whole.headers["content-type"]
    assert head.headers["content-length"] == str(len(whole.content))
