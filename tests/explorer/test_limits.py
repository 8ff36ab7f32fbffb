from dataclasses import asdict

import pytest

from regard.explorer.limits import LIMITS


def test_the_browser_is_told_every_limit(client):
    assert client.get("/api/runs").json()["limits"] == asdict(LIMITS)


@pytest.mark.parametrize("name", ["text", "source", "target"])
def test_a_text_at_the_limit_passes_and_one_letter_more_does_not(client, refused, trained, name):
    path = "/api/translate" if name == "text" else "/api/traces"
    form = {"run": "small"} | ({} if name == "text" else {"source": "a", "target": "b"})
    blank = {"text": " ", "source": "\N{NO-BREAK SPACE}", "target": "\N{NO-BREAK SPACE}"}[name]
    at_limit = client.post(path, json=form | {name: blank * LIMITS.max_characters})
    assert "characters" not in at_limit.text
    beyond = client.post(path, json=form | {name: blank * (LIMITS.max_characters + 1)})
    assert f"{name} must have at most {LIMITS.max_characters} characters" in refused(beyond, 422)


def test_a_text_of_too_many_tokens_is_refused(client, refused):
    form = {"run": "small", "text": "x" * (LIMITS.max_tokens + 1)}
    sentence = refused(client.post("/api/translate", json=form), 422)
    assert f"text must be at most {LIMITS.max_tokens} tokens long, but it has" in sentence


@pytest.mark.parametrize("name", ["beam_size", "n_best"])
@pytest.mark.parametrize("beyond", [0, -1, 10**6, 10**30])
def test_beams_and_translations_are_bounded(client, refused, name, beyond):
    form = {"run": "small", "text": "the cat", name: beyond}
    assert refused(client.post("/api/translate", json=form), 422).startswith(f"{name} must be ")


def test_more_translations_than_beams_are_refused(client, refused):
    form = {"run": "small", "text": "the cat", "beam_size": 2, "n_best": 3}
    assert refused(client.post("/api/translate", json=form), 422) == (
        "n_best must be at most beam_size, 2, but it is 3."
    )


def test_cells_of_the_playground_are_bounded(client, refused):
    rows = [[0.5]] * 200
    form = {"queries": rows, "keys": rows, "score": "dot"}
    assert "queries times keys must be at most" in refused(
        client.post("/api/attend", json=form), 422
    )
