import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from regard import RegardError
from regard.trace import Trace, load_trace
from regard.trace.file import _REDUCED

FIXTURE = Path(__file__).parents[1] / "data" / "trace.json"  # the page's tests read it, too


def assert_same(one, other):
    assert one.tokens == other.tokens
    assert (one.title, one.model, one.gold) == (other.title, other.model, other.gold)
    assert len(one.looks) == len(other.looks)
    for mine, theirs in zip(one.looks, other.looks, strict=True):
        for name in ("name", "kind", "queries", "keys", "heads", "call", "place", "sizes"):
            assert getattr(mine, name) == getattr(theirs, name)
        for name in ("weights", "value_norms"):
            assert_close(getattr(mine, name), getattr(theirs, name))
        for name in _REDUCED if mine.reduced is not None else ():
            step = 0.005 if name == "tiles" else 5e-5
            assert_close(getattr(mine.reduced, name), getattr(theirs.reduced, name), step)


def assert_close(mine, theirs, step=5e-5):
    assert (mine is None) == (theirs is None)
    if mine is not None:
        np.testing.assert_allclose(mine, theirs, atol=step * max(1, float(theirs.max())))


def test_a_trace_comes_back_from_json(whole_trace):
    assert_same(Trace.from_json(whole_trace.to_json()), whole_trace)


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_a_trace_comes_back_from_a_file(tmp_path, whole_trace, name):
    whole_trace.save(tmp_path / name)
    assert_same(load_trace(tmp_path / name), whole_trace)
    packed = (tmp_path / name).read_bytes()[:2] == b"\x1f\x8b"
    assert packed == name.endswith("gz")


def test_the_fixture_that_the_page_reads_is_this_trace(whole_trace):
    assert_same(load_trace(FIXTURE), whole_trace)
    written, kept = json.loads(whole_trace.to_json()), json.loads(FIXTURE.read_text("utf-8"))
    assert list(written) == list(kept)
    assert [list(look) for look in written["looks"]] == [list(look) for look in kept["looks"]]


def test_numbers_in_the_file_are_as_documented(whole_trace):
    packed = json.loads(whole_trace.to_json())["looks"][0]["weights"]
    integers = np.frombuffer(__import__("base64").b64decode(packed["data"]), "<u2")
    numbers = integers.reshape(packed["shape"]) * packed["scale"]
    np.testing.assert_allclose(numbers, whole_trace.looks[0].weights, atol=5e-5)


def test_the_same_trace_makes_the_same_file(tmp_path, whole_trace):
    for name in ("a.gz", "b.gz"):
        whole_trace.save(tmp_path / name)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


@pytest.mark.parametrize(
    "change, words",
    [
        ({"version": 2}, "the trace has version 2, but this regard reads version 1"),
        ({"version": None}, "the trace has version None"),
        ({"format": "other"}, "this is JSON, but not a trace"),
        ({"tokens": {}}, "queries of encoder.0 are 'source', but the tokens are "),
        ({"tokens": []}, "the trace cannot be read"),
        ({"looks": [{"kind": "self"}]}, "the trace lacks 'name'"),
        ({"looks": 5}, "the trace cannot be read"),
        ({"gold": [[9, 9]]}, "gold links must be"),
        ({"gold": [[1]]}, "the trace cannot be read"),
        ({"gold": [[float("inf"), 0]]}, "the trace cannot be read: .*infinity"),
        ({"tokens": {"source": {"pieces": [1]}}}, "pieces must be a list of texts"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_sentence(whole_trace, change, words):
    record = json.loads(whole_trace.to_json()) | change
    with pytest.raises(RegardError, match=words):
        Trace.from_json(json.dumps(record))


@pytest.mark.parametrize("text", ["", "[]", "3", "not JSON"])
def test_what_is_no_trace_is_refused(text):
    with pytest.raises(RegardError, match="a trace must be JSON|not a trace"):
        Trace.from_json(text)


def test_a_call_without_end_is_refused(whole_trace):
    record = json.loads(whole_trace.to_json())
    record["looks"][0]["call"] = float("inf")
    with pytest.raises(RegardError, match="the trace cannot be read: .*infinity"):
        Trace.from_json(json.dumps(record))


@pytest.mark.parametrize("text", ["[" * 200_000, "9" * 5000], ids=["nesting", "digits"])
def test_json_without_end_is_refused(text):
    with pytest.raises(RegardError, match="a trace must be JSON that can be read, but: "):
        Trace.from_json(text)


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
@pytest.mark.parametrize("share", [0.3, 0.999])
def test_a_truncated_file_is_refused(tmp_path, whole_trace, name, share):
    whole_trace.save(tmp_path / name)
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(data[: int(len(data) * share)])
    with pytest.raises(RegardError, match=f"{name}.*(breaks off|cannot be unpacked)"):
        load_trace(tmp_path / name)


@pytest.mark.parametrize(
    "data", [b"\x80\x04\x95pickle", b"PK\x03\x04", gzip.compress(b"\xff", mtime=0)]
)
def test_other_files_are_refused(tmp_path, data):
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(RegardError, match="a is not a trace|a: a trace must be JSON"):
        load_trace(tmp_path / "a")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(RegardError, match="cannot read .*nowhere.json: No such file"):
        load_trace(tmp_path / "nowhere.json")
    with pytest.raises(RegardError, match="cannot write"):
        load_trace(FIXTURE).save(tmp_path / "nowhere" / "a.json")


def test_reading_a_trace_needs_no_torch():
    import subprocess
    import sys

    code = f"import sys, regard; regard.load_trace({str(FIXTURE)!r}); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == (
        "False\n"
    )
