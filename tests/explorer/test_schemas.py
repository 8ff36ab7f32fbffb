from typing import get_args

import pytest
from pydantic import ValidationError

from helpers.explorer import error_message
from regard.attention import SCORE_NAMES
from regard.explorer import schemas
from regard.explorer.inference import trace_text
from regard.explorer.schemas import LIMITS


def test_score_names_are_those_of_the_library():
    assert list(get_args(schemas.ScoreName)) == list(SCORE_NAMES)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"run": "a", "text": 5}, "text"),
        ({"run": "a", "text": "b", "beam_size": "5"}, "beam_size"),
        ({"run": "a", "text": "b", "beam_size": True}, "beam_size"),
        ({"run": "a", "text": "b", "beam_size": 1.5}, "beam_size"),
        ({"run": "a", "text": "b", "extra": 1}, "extra"),
        ({"run": "a", "text": "a\0b"}, "text"),
        ({"run": "a", "text": "\ud800"}, "text"),
        ({"text": "b"}, "run"),
    ],
)
def test_requests_are_not_coerced_and_unknown_fields_rejected(body, field):
    with pytest.raises(ValidationError) as error:
        schemas.TranslateRequest.model_validate(body)
    assert [item["loc"] for item in error.value.errors()] == [(field,)]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300, -1e7, "1", True, None])
def test_vector_components_must_be_finite_and_moderate(value):
    with pytest.raises(ValidationError):
        schemas.AttendRequest.model_validate(
            {"queries": [[value]], "keys": [[1.0]], "score": "dot"}
        )


def test_trace_response_describes_every_field_of_a_trace(run):
    record = trace_text(run, "the old cat", "le chat vieux")
    response = schemas.TraceResponse.model_validate(record)
    assert response.model_dump(exclude_none=True, mode="json") == _without_none(record)


def _without_none(value):
    """Return lists for tuples, without the keys whose value is None."""
    if isinstance(value, dict):
        return {name: _without_none(item) for name, item in value.items() if item is not None}
    return [_without_none(item) for item in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("field", ["text", "source", "target"])
def test_text_at_the_character_limit_passes_and_one_more_is_422(client, field):
    path = "/api/translate" if field == "text" else "/api/traces"
    body = {"run": "tiny"} | ({} if field == "text" else {"source": "a", "target": "b"})
    blank = " " if field == "text" else "\N{NO-BREAK SPACE}"
    at_limit = client.post(path, json=body | {field: blank * LIMITS.max_characters})
    assert "characters" not in at_limit.text
    response = client.post(path, json=body | {field: blank * (LIMITS.max_characters + 1)})
    expected = f"{field} must have at most {LIMITS.max_characters} characters"
    assert expected in error_message(response, 422)


def test_text_beyond_the_token_limit_is_422(client):
    body = {"run": "tiny", "text": "x" * (LIMITS.max_tokens + 1)}
    message = error_message(client.post("/api/translate", json=body), 422)
    assert f"text must be at most {LIMITS.max_tokens} tokens long, but it has" in message


@pytest.mark.parametrize("field", ["beam_size", "n_best"])
@pytest.mark.parametrize("value", [0, -1, 10**6, 10**30])
def test_beam_size_and_n_best_out_of_range_are_422(client, field, value):
    body = {"run": "tiny", "text": "the cat", field: value}
    message = error_message(client.post("/api/translate", json=body), 422)
    assert message.startswith(f"{field} must be ")


def test_n_best_larger_than_beam_size_is_422(client):
    body = {"run": "tiny", "text": "the cat", "beam_size": 2, "n_best": 3}
    message = error_message(client.post("/api/translate", json=body), 422)
    assert message.startswith("n_best must be at most 2, the beam size, but it is 3; ")


def test_too_many_attention_cells_are_422(client):
    rows = [[0.5]] * 200
    body = {"queries": rows, "keys": rows, "score": "dot"}
    message = error_message(client.post("/api/attend", json=body), 422)
    assert message == "queries × keys must be at most 20000, but they are 200 × 200."
