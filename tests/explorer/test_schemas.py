import pytest
from pydantic import ValidationError

from regard.attention.scores.registry import SCORE_NAMES
from regard.explorer import schemas
from regard.explorer.inference import trace
from regard.explorer.playground import known


def values(kind):
    return list(kind.__args__)


def test_the_forms_know_what_the_playground_knows():
    lists = known()
    assert values(schemas.Score) == lists["scores"] == list(SCORE_NAMES)
    assert values(schemas.MaskKind) == lists["masks"]
    assert values(schemas.Positions) == lists["positions"]


@pytest.mark.parametrize(
    ("given", "place"),
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
def test_nothing_is_guessed_and_nothing_ignored(given, place):
    with pytest.raises(ValidationError) as problem:
        schemas.TranslateForm.model_validate(given)
    assert [error["loc"] for error in problem.value.errors()] == [(place,)]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e300, -1e7, "1", True, None])
def test_a_number_of_the_playground_is_finite_and_moderate(number):
    with pytest.raises(ValidationError):
        schemas.AttendForm.model_validate({"queries": [[number]], "keys": [[1.0]], "score": "dot"})


def test_a_trace_has_the_form_that_is_described(run):
    record = trace(run, "the old cat", "le chat vieux")
    described = schemas.TraceAnswer.model_validate(record)
    assert described.model_dump(exclude_none=True, mode="json") == _without_none(record)


def _without_none(value):
    """Write tuples as lists, and leave out what is not said."""
    if isinstance(value, dict):
        return {name: _without_none(part) for name, part in value.items() if part is not None}
    return [_without_none(part) for part in value] if isinstance(value, list | tuple) else value
