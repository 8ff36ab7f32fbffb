import base64
import gzip
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from starlette.exceptions import HTTPException

from helpers.explorer import error_message
from regard.errors import RegardError
from regard.explorer import TraceRegistry, traces
from regard.explorer.schemas import LIMITS, ExplorerLimits
from regard.explorer.traces import open_upload, parse_trace, parse_traces
from regard.trace import build_translation_trace, load_trace
from regard.viz import page_payload

FIXTURE = Path(__file__).parents[1] / "fixtures" / "trace.json"
RECORD = json.loads(FIXTURE.read_text("utf-8"))


def make_trace(title):
    return build_translation_trace(
        ["a", title], ["c"], cross=[np.full((1, 1, 2), 0.5)], title=title
    )


JSONL = "".join(f"{make_trace(title).to_json()}\n" for title in ("x", "\u2028 y \x85", "z"))


def as_json(value):
    return json.loads(json.dumps(value))


def upload(client, data):
    return client.post("/api/traces/open", content=data)


@pytest.fixture
def jsonl_file(tmp_path):
    """A file of three traces, as `regard translate --traces` writes it."""
    path = tmp_path / "several.jsonl"
    path.write_text("".join(f"{make_trace(title).to_json()}\n" for title in "xyz"), "utf-8")
    return path


# ---- files: one trace, or one per line ----


def test_each_line_of_a_file_is_a_trace():
    assert [trace.title for trace in parse_traces(JSONL)] == ["x", "\u2028 y \x85", "z"]
    assert parse_trace(JSONL, 2).tokens["source"].pieces == ("a", "\u2028 y \x85")
    assert len(parse_traces(JSONL.replace("\n", "\r\n\r\n"))) == 3


def test_indented_json_is_one_trace():
    text = json.dumps(json.loads(make_trace("x").to_json()), indent=2)
    assert text.count("\n") > 20
    assert [trace.title for trace in parse_traces(text)] == ["x"]


def test_malformed_line_is_named_by_its_number():
    with pytest.raises(RegardError, match="trace 3 of 3: a trace must be JSON"):
        parse_traces(JSONL[:-9])
    with pytest.raises(RegardError, match="trace 2 of 2: this is JSON, but not a trace"):
        parse_trace(make_trace("x").to_json() + "\n{}", 2)


def test_number_beyond_the_last_trace_is_an_error():
    with pytest.raises(RegardError, match="trace 4 does not exist: the file has 3"):
        parse_trace(JSONL, 4)


def test_too_many_traces_in_a_file_are_an_error():
    assert len(parse_traces(JSONL, ExplorerLimits(max_traces_per_file=3))) == 3
    with pytest.raises(RegardError, match="at most 2 traces .* this one holds 3 with"):
        parse_trace(JSONL, 1, ExplorerLimits(max_traces_per_file=2))


def test_total_size_limits_files_of_several_traces_only(monkeypatch):
    monkeypatch.setattr(traces, "MAX_JSONL_CHARACTERS", 100)
    with pytest.raises(RegardError, match="with 100 characters in total"):
        parse_traces(JSONL)
    assert len(parse_traces(make_trace("x").to_json())) == 1


# ---- traces named at start ----


def test_registered_traces_are_listed_and_served(make_client, tmp_path):
    other = tmp_path / "other.json.gz"
    make_trace("two").save(other)
    client = make_client(traces=[FIXTURE, other, other])
    assert client.get("/api/traces").json()["traces"] == [
        {"name": "trace", "title": RECORD["title"], "model": RECORD["model"]},
        {"name": "other", "title": "two", "model": ""},
        {"name": "other-2", "title": "two", "model": ""},
    ]
    for name, path in (("trace", FIXTURE), ("other-2", other)):
        response = client.get(f"/api/traces/{name}").json()
        assert response == as_json(page_payload(load_trace(path)))


def test_unregistered_trace_is_404(make_client):
    client = make_client(traces=[FIXTURE])
    message = error_message(client.get("/api/traces/unknown"), 404)
    assert message == "no trace is named 'unknown'; available: 'trace'."
    error_message(client.get("/api/traces/..%2f..%2fetc%2fpasswd"), 404)


def test_removed_trace_file_is_404(make_client, tmp_path):
    path = tmp_path / "removed.json"
    make_trace("x").save(path)
    client = make_client(traces=[path])
    path.unlink()
    message = error_message(client.get("/api/traces/removed"), 404)
    assert "cannot be read at the moment" in message


def test_registered_file_may_hold_several_traces(make_client, jsonl_file):
    client = make_client(traces=[jsonl_file, FIXTURE])
    infos = client.get("/api/traces").json()["traces"]
    assert [(info["name"], info["title"]) for info in infos] == [
        ("several 1", "x"),
        ("several 2", "y"),
        ("several 3", "z"),
        ("trace", RECORD["title"]),
    ]
    trace = client.get("/api/traces/several 2").json()
    assert trace["tokens"]["source"]["pieces"] == ["a", "y"]
    jsonl_file.write_text("")
    message = error_message(client.get("/api/traces/several 2"), 404)
    assert "cannot be read at the moment" in message


def test_invalid_trace_file_is_an_error_at_start(tmp_path):
    (tmp_path / "no.json").write_text("{}")
    with pytest.raises(RegardError, match="not a trace"):
        TraceRegistry([tmp_path / "no.json"])


# ---- uploads ----


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_uploaded_trace_may_be_gzipped_or_not(make_client, compress):
    response = upload(make_client(), compress(FIXTURE.read_bytes()))
    assert response.status_code == 200
    assert response.json() == as_json(page_payload(load_trace(FIXTURE)))


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_uploaded_file_may_hold_several_traces(make_client, jsonl_file, compress):
    client, data = make_client(), compress(jsonl_file.read_bytes())
    infos = client.post("/api/traces/contents", content=data).json()["traces"]
    assert [(info["name"], info["title"]) for info in infos] == [("1", "x"), ("2", "y"), ("3", "z")]
    for number in (1, 3):
        response = client.post("/api/traces/open", content=data, params={"number": number})
        assert response.json()["title"] == "xyz"[number - 1]
    for number, message in ((4, "the file has 3"), (0, "number must be")):
        response = client.post("/api/traces/open", content=data, params={"number": number})
        assert message in error_message(response, 422)


def test_file_of_too_many_traces_is_rejected(make_client, jsonl_file):
    line = jsonl_file.read_text("utf-8").splitlines()[0]
    text = "\n".join([line] * (LIMITS.max_traces_per_file + 1))
    response = make_client().post("/api/traces/contents", content=text.encode())
    expected = f"a file may hold at most {LIMITS.max_traces_per_file} traces"
    assert expected in error_message(response, 422)
    jsonl_file.write_text(text, encoding="utf-8")
    with pytest.raises(RegardError, match=r"several\.jsonl: a file may hold"):
        TraceRegistry([jsonl_file])


def with_fields(**fields):
    return json.dumps(RECORD | fields).encode()


def with_weights(**fields):
    maps = as_json(RECORD["maps"])
    maps[0]["weights"] |= fields
    return with_fields(maps=maps)


def with_tokens(**fields):
    source = RECORD["tokens"]["source"] | fields
    return with_fields(tokens=RECORD["tokens"] | {"source": source})


def with_map(**fields):
    return with_fields(maps=[RECORD["maps"][0] | fields, *RECORD["maps"][1:]])


HOSTILE = {
    "empty": b"",
    "not JSON": b"GIF89a",
    "invalid UTF-8": b"\xff\xfe{}",
    "truncated": FIXTURE.read_bytes()[:-40],
    "truncated gzip": gzip.compress(FIXTURE.read_bytes())[:-40],
    "damaged gzip": b"\x1f\x8b\x08\x00garbage",
    "a number": b"7",
    "deeply nested": b"[" * 200_000,
    "other version": with_fields(version=2),
    "maps not a list": with_fields(maps=7),
    "no tokens": with_fields(tokens={}),
    "gold links of missing words": with_fields(gold=[[90, 90]]),
    "gold links not pairs": with_fields(gold=[["a"]]),
    "infinite gold link": with_fields(gold=[[float("inf"), 0]]),
    "infinite call": with_map(call=float("inf")),
    "too few weights": with_weights(data="AAAA"),
    "weights not base64": with_weights(data="\u2603"),
    "negative scale": with_weights(scale=-1.0),
    "infinite scale": with_weights(scale=float("inf")),
    "NaN scale": with_weights(scale=float("nan")),
    "huge shape": with_weights(shape=[10**30, 10**30, 10**30]),
    "negative shape": with_weights(shape=[-1, -5, 5]),
    "unknown bit width": with_weights(bits=12),
    "words as strings": with_tokens(words=["a"] * 5),
    "log-probabilities as strings": with_tokens(log_probs=["a"] * 5),
    "NaN log-probabilities": with_tokens(log_probs=[float("nan")] * 5),
    "special positions as strings": with_tokens(special=["a"]),
    "special positions as lists": with_tokens(special=[[]]),
    "pieces as numbers": with_tokens(pieces=[1, 2, 3, 4, 5]),
    "huge integer": b'{"format": "regard trace", "version": ' + b"9" * 5000 + b"}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_malformed_upload_is_422(make_client, unchecked, name):
    error_message(upload(make_client(), HOSTILE[name]), 422)


def test_lone_surrogate_is_returned_unchanged(make_client):
    pieces = ["\ud800", "a", "\0", "</script>", "\u202e"]
    response = upload(make_client(), with_tokens(pieces=pieces))
    assert response.json()["tokens"]["source"]["pieces"] == pieces


def test_zip_bomb_is_413_without_being_decompressed():
    bomb = gzip.compress(b" " * 10_000_000)
    assert len(bomb) < 20_000
    tracemalloc.start()
    try:
        with pytest.raises(HTTPException, match="at most 100000 bytes when decompressed") as error:
            open_upload(bomb, limits=ExplorerLimits(max_trace_bytes=100_000))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert error.value.status_code == 413
    assert peak_bytes < 1_000_000


def test_uploads_have_their_own_body_limit(make_client):
    client = make_client()
    padding = b" " * (2 * LIMITS.max_body_bytes)
    assert upload(client, FIXTURE.read_bytes() + padding).status_code == 200
    assert "at most" in error_message(upload(client, b" " * (LIMITS.max_trace_bytes + 1)), 413)


def test_large_weights_are_summarized_for_the_page(make_client):
    rows = np.full((4, 900, 900), 1 / 900, dtype=np.float32)
    trace = build_translation_trace([str(n) for n in range(900)], ["a"], encoder=[rows])
    data = gzip.compress(trace.to_json().encode())
    (attention_map,) = upload(make_client(), data).json()["maps"]
    assert "weights" not in attention_map and attention_map["shape"] == [4, 900, 900]
    tiles = base64.b64decode(attention_map["summary"]["tiles"]["data"])
    assert len(tiles) < 4 * 900 * 900
