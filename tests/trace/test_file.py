import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from regard import RegardError
from regard.trace import Tokens, Trace, file, load_trace, translation
from regard.trace.file import _REDUCED
from regard.trace.quantize import pack, unpack

FIXTURE = Path(__file__).parents[1] / "fixtures" / "trace.json"  # the page's tests read it, too


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


BROKEN = {
    "scale": ({"weights": {"scale": float("nan")}}, "weights must have a scale above 0"),
    "heads": ({"heads": [float("nan")] * 2}, "heads of decoder.* must name 2 by numbers"),
    "nested heads": ({"heads": [{}, {}]}, "heads of decoder.* must name 2 by numbers"),
    "top": ({"reduced": {"top": 250}}, "top of decoder.* must name keys from 0 to 4"),
    "no tiles": ({"reduced": {"tiles": [0]}}, "tiles of decoder.* must have 3 axes"),
    "a tile": ({"reduced": {"tiles": []}}, "tiles of decoder.* must have 3 axes"),
    "received": ({"reduced": {"received": []}}, "received of decoder.* must have 2 axes"),
    "text": ({"name": ["<b>"]}, "name must be a text"),
}


def broken(packed, change):
    """Give numbers another shape, or one number everywhere."""
    if isinstance(change, dict):
        return packed | change
    numbers = unpack(packed, "numbers", whole=isinstance(change, int))
    return pack(np.full_like(numbers, change) if isinstance(change, int) else np.zeros(change))


@pytest.mark.parametrize("case", BROKEN)
def test_a_look_that_would_fail_later_is_refused(unchecked, tmp_path, whole_trace, case):
    change, words = BROKEN[case]
    record = json.loads(whole_trace.to_json())
    number = 0 if "weights" in change else len(record["looks"]) - 1
    look = record["looks"][number]
    for name, value in change.items():
        if name == "weights":
            look[name] = broken(look[name], value)
        elif name == "reduced":
            look[name] |= {part: broken(look[name][part], new) for part, new in value.items()}
        else:
            look[name] = value
    (tmp_path / "a.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(
        RegardError, match=f"a.json: the trace cannot be read: look {number}: {words}"
    ):
        load_trace(tmp_path / "a.json")


@pytest.mark.parametrize(
    "change, words",
    [
        ({"words": ["a", "b", [1], 2, 3]}, "words must be numbers"),
        ({"special": [0.5]}, "special and padding must be positions"),
        ({"log_probabilities": ["a", None, None, None, None]}, "log_probabilities must be numbers"),
        ({"log_probabilities": [float("nan")] * 5}, "log_probabilities must be finite or null"),
    ],
)
def test_tokens_that_would_fail_later_are_refused(unchecked, whole_trace, change, words):
    record = json.loads(whole_trace.to_json())
    record["tokens"]["source"] |= change
    with pytest.raises(RegardError, match=f"the trace cannot be read: tokens 'source': {words}"):
        Trace.from_json(json.dumps(record))


def test_what_a_file_cannot_hold_is_refused_with_its_name(tmp_path):
    endless = Tokens(("a",), log_probabilities=(-np.inf,))
    words = "cannot write .*a.json: .*tokens 'text': log_probabilities must be finite"
    with pytest.raises(RegardError, match=words):
        Trace(tokens={"text": endless}, looks=()).save(tmp_path / "a.json")
    assert not (tmp_path / "a.json").exists()


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_half_a_surrogate_pair_comes_back_from_a_file(tmp_path, name):
    odd = Trace(tokens={"text": Tokens(("\udfff", "\\udfff", "猫"))}, looks=(), title="\ud800")
    odd.save(tmp_path / name)
    back = load_trace(tmp_path / name)
    assert (back.tokens, back.title) == (odd.tokens, odd.title)


def test_weights_that_are_no_numbers_are_refused_with_their_name(tmp_path):
    trace = translation(["a"], ["b"], cross=[np.full((1, 1, 1), np.nan)])
    with pytest.raises(RegardError, match="a.json: .*look 'cross.0': numbers of a trace must be"):
        trace.save(tmp_path / "a.json")


def test_a_small_file_that_unpacks_to_too_much_is_refused(tmp_path, whole_trace, monkeypatch):
    whole_trace.save(tmp_path / "a.json.gz")
    monkeypatch.setattr(file, "UNPACKED_UP_TO", len(whole_trace.to_json().encode()))
    load_trace(tmp_path / "a.json.gz")
    monkeypatch.setattr(file, "UNPACKED_UP_TO", 99)
    with pytest.raises(RegardError, match="a.json.gz must unpack to at most 99 bytes"):
        load_trace(tmp_path / "a.json.gz")
