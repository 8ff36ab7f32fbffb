import base64
import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from regard.errors import RegardError
from regard.explorer.errors import Refused
from regard.explorer.limits import LIMITS, Limits
from regard.explorer.traces import Saved, opened
from regard.trace import build_translation_trace, load_trace
from regard.viz.page import page_payload

FIXTURE = Path(__file__).parents[1] / "fixtures" / "trace.json"
RECORD = json.loads(FIXTURE.read_text("utf-8"))


def plain(value):
    return json.loads(json.dumps(value))


def send(client, data):
    return client.post("/api/traces/open", content=data)


def test_traces_named_at_start_are_listed_and_given(visit, tmp_path, refused):
    other = tmp_path / "other.json.gz"
    build_translation_trace(["a", "b"], ["c"], cross=[np.full((1, 1, 2), 0.5)], title="two").save(
        other
    )
    client = visit(traces=[FIXTURE, other, other])
    assert client.get("/api/traces").json()["traces"] == [
        {"name": "trace", "title": RECORD["title"], "model": RECORD["model"]},
        {"name": "other", "title": "two", "model": ""},
        {"name": "other-2", "title": "two", "model": ""},
    ]
    for name, path in (("trace", FIXTURE), ("other-2", other)):
        given = client.get(f"/api/traces/{name}").json()
        assert given == plain(page_payload(load_trace(path)))
    assert "no trace is called" in refused(client.get("/api/traces/nobody"), 404)
    refused(client.get("/api/traces/..%2f..%2fetc%2fpasswd"), 404)
    other.unlink()
    assert "cannot be read now" in refused(client.get("/api/traces/other"), 404)


@pytest.fixture
def several(tmp_path):
    """A file as `regard translate --traces` writes it."""
    found = [
        build_translation_trace(["a"], [n], cross=[np.ones((1, 1, 1))], title=n) for n in "xyz"
    ]
    path = tmp_path / "several.jsonl"
    path.write_text("".join(f"{trace.to_json()}\n" for trace in found), encoding="utf-8")
    return path


def test_a_file_named_at_start_may_hold_several_traces(visit, several, refused):
    client = visit(traces=[several, FIXTURE])
    listed = client.get("/api/traces").json()["traces"]
    assert [(trace["name"], trace["title"]) for trace in listed] == [
        ("several 1", "x"),
        ("several 2", "y"),
        ("several 3", "z"),
        ("trace", RECORD["title"]),
    ]
    given = client.get("/api/traces/several 2").json()
    assert given["tokens"]["target"]["pieces"] == ["y"]
    several.write_text("")
    assert "cannot be read now" in refused(client.get("/api/traces/several 2"), 404)


@pytest.mark.parametrize("packed", [bytes, gzip.compress])
def test_a_file_that_is_sent_may_hold_several_traces(visit, several, packed, refused):
    client, data = visit(), packed(several.read_bytes())
    listed = client.post("/api/traces/contents", content=data).json()["traces"]
    assert [trace["name"] for trace in listed] == ["1", "2", "3"]
    assert [trace["title"] for trace in listed] == ["x", "y", "z"]
    for number in (1, 3):
        given = client.post("/api/traces/open", content=data, params={"number": number}).json()
        assert given["title"] == "xyz"[number - 1]
    beyond = client.post("/api/traces/open", content=data, params={"number": 4})
    assert "the file has 3" in refused(beyond, 422)
    refused(client.post("/api/traces/open", content=data, params={"number": 0}), 422)


def test_more_traces_than_can_be_listed_are_refused_with_a_sentence(visit, several, refused):
    line = several.read_text("utf-8").splitlines()[0]
    many = "\n".join([line] * (LIMITS.max_traces_per_file + 1))
    answer = visit().post("/api/traces/contents", content=many.encode())
    assert f"a file may hold {LIMITS.max_traces_per_file} traces" in refused(answer, 422)
    several.write_text(many, encoding="utf-8")
    with pytest.raises(RegardError, match=r"several\.jsonl: a file may hold"):
        Saved([several])


def test_a_file_that_is_no_trace_is_refused_at_the_start(tmp_path):
    (tmp_path / "no.json").write_text("{}")
    with pytest.raises(RegardError, match="not a trace"):
        Saved([tmp_path / "no.json"])


@pytest.mark.parametrize("packed", [bytes, gzip.compress])
def test_a_trace_that_is_sent_is_read_whether_packed_or_not(visit, packed):
    answer = send(visit(), packed(FIXTURE.read_bytes()))
    assert answer.status_code == 200
    assert answer.json() == plain(page_payload(load_trace(FIXTURE)))


def changed(**parts):
    return json.dumps(RECORD | parts).encode()


def weights(**parts):
    looks = plain(RECORD["maps"])
    looks[0]["weights"] |= parts
    return changed(maps=looks)


def tokens(**parts):
    return changed(tokens=RECORD["tokens"] | {"source": RECORD["tokens"]["source"] | parts})


def look(**parts):
    return changed(maps=[RECORD["maps"][0] | parts, *RECORD["maps"][1:]])


HOSTILE = {
    "nothing": b"",
    "not JSON": b"GIF89a",
    "not UTF-8": b"\xff\xfe{}",
    "torn": FIXTURE.read_bytes()[:-40],
    "torn and packed": gzip.compress(FIXTURE.read_bytes())[:-40],
    "spoilt and packed": b"\x1f\x8b\x08\x00garbage",
    "a number": b"7",
    "deep": b"[" * 200_000,
    "another version": changed(version=1),
    "looks that are no list": changed(maps=7),
    "no tokens": changed(tokens={}),
    "gold of words that are not there": changed(gold=[[90, 90]]),
    "gold that is no pairs": changed(gold=[["a"]]),
    "gold without end": changed(gold=[[float("inf"), 0]]),
    "a call without end": look(call=float("inf")),
    "numbers that are too few": weights(data="AAAA"),
    "numbers that are not base64": weights(data="\u2603"),
    "a negative scale": weights(scale=-1.0),
    "a scale without end": weights(scale=float("inf")),
    "a scale that is no number": weights(scale=float("nan")),
    "a shape without end": weights(shape=[10**30, 10**30, 10**30]),
    "a negative shape": weights(shape=[-1, -5, 5]),
    "bits that are no bits": weights(bits=12),
    "words that are texts": tokens(words=["a"] * 5),
    "probabilities that are texts": tokens(log_probs=["a"] * 5),
    "probabilities that are no numbers": tokens(log_probs=[float("nan")] * 5),
    "specials that are texts": tokens(special=["a"]),
    "specials that are lists": tokens(special=[[]]),
    "pieces that are numbers": tokens(pieces=[1, 2, 3, 4, 5]),
    "a number too long to read": b'{"format": "regard trace", "version": ' + b"9" * 5000 + b"}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_trace_is_refused_with_a_sentence(visit, refused, unchecked, name):
    refused(send(visit(), HOSTILE[name]), 422)


def test_half_a_surrogate_pair_comes_back_as_it_came(visit):
    answer = send(visit(), tokens(pieces=["\ud800", "a", "\0", "</script>", "\u202e"]))
    assert answer.json()["tokens"]["source"]["pieces"] == [
        "\ud800",
        "a",
        "\0",
        "</script>",
        "\u202e",
    ]


def test_a_small_file_that_unpacks_to_a_large_one_is_refused_before_it_is_large():
    bomb = gzip.compress(b" " * 10_000_000)
    assert len(bomb) < 20_000
    with pytest.raises(Refused, match="at most 100000 bytes when it is unpacked") as problem:
        opened(bomb, limits=Limits(max_trace_bytes=100_000))
    assert problem.value.status == 413


def test_a_trace_that_is_too_large_is_refused_but_one_larger_than_other_requests_is_read(
    visit, refused
):
    client = visit()
    spaces = b" " * (2 * LIMITS.max_body_bytes)
    assert send(client, FIXTURE.read_bytes() + spaces).status_code == 200
    assert "at most" in refused(send(client, b" " * (LIMITS.max_trace_bytes + 1)), 413)


def test_many_weights_are_reduced_to_what_a_page_can_draw(visit):
    rows = np.full((4, 900, 900), 1 / 900, dtype=np.float32)
    trace = build_translation_trace([str(n) for n in range(900)], ["a"], encoder=[rows])
    data = gzip.compress(trace.to_json().encode())
    (look,) = send(visit(), data).json()["maps"]
    assert "weights" not in look and look["shape"] == [4, 900, 900]
    assert len(base64.b64decode(look["summary"]["tiles"]["data"])) < 4 * 900 * 900
