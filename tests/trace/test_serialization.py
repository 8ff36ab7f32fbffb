import base64
import json
from dataclasses import replace

import numpy as np
import pytest

from helpers.sample_trace import FIXTURE
from helpers.traces import assert_same_trace
from regard import RegardError
from regard.trace import TokenList, Trace, dequantize, load_trace, quantize


def test_trace_is_restored_from_json(sample_trace):
    assert_same_trace(Trace.from_json(sample_trace.to_json()), sample_trace)


def test_trace_is_restored_from_dict(sample_trace):
    assert_same_trace(Trace.from_dict(sample_trace.to_dict()), sample_trace)


def test_json_is_the_dict(sample_trace):
    assert json.loads(sample_trace.to_json()) == sample_trace.to_dict()


def test_dict_can_be_changed_without_changing_the_trace(sample_trace):
    record = sample_trace.to_dict()
    record["tokens"]["source"]["pieces"][0] = "another"
    record["maps"].pop()
    assert sample_trace.tokens["source"].pieces[0] == "▁The"
    assert len(sample_trace.to_dict()["maps"]) == 5


def test_fixture_that_the_page_reads_is_the_sample_trace(sample_trace):
    assert_same_trace(load_trace(FIXTURE), sample_trace)
    stored = json.loads(FIXTURE.read_text("utf-8"))
    assert list(sample_trace.to_dict()) == list(stored)
    assert [list(m) for m in sample_trace.to_dict()["maps"]] == [list(m) for m in stored["maps"]]


def test_arrays_are_stored_as_documented(sample_trace):
    record = sample_trace.to_dict()["maps"][0]["weights"]
    integers = np.frombuffer(base64.b64decode(record["data"]), "<u2")
    values = integers.reshape(record["shape"]) * record["scale"]
    np.testing.assert_allclose(values, sample_trace.maps[0].weights, atol=5e-5)


@pytest.mark.parametrize("version", [2, 3, 5, None, "4"])
def test_other_format_version_is_refused_by_its_number(sample_trace, version):
    message = f"format version {version!r}, but this regard reads version 4"
    with pytest.raises(RegardError, match=message):
        Trace.from_dict(sample_trace.to_dict() | {"version": version})


@pytest.mark.parametrize(
    "change, message",
    [
        ({"format": "other"}, "this is JSON, but not a trace"),
        ({"tokens": {}}, "queries of encoder.0 are 'source', but the token lists are "),
        ({"tokens": []}, "the trace cannot be read"),
        ({"maps": [{"kind": "self"}]}, "the trace lacks 'name' in map 0"),
        ({"maps": 5}, "the trace cannot be read"),
        ({"gold": [[9, 9]]}, "gold links must be"),
        ({"gold": [[1]]}, "the trace cannot be read"),
        ({"gold": [[float("inf"), 0]]}, "a trace must have finite numbers, but one is Infinity"),
        ({"gold": [[0.5, 0]]}, "gold must be an integer from 0 upwards, but it is 0.5"),
        ({"tokens": {"source": {"pieces": [1]}}}, "pieces must be a list of strings"),
        ({"tokens": {"source": {"pieces": "ab"}}}, "pieces must be a list of strings"),
        ({"title": ["<b>"]}, "title must be a string"),
    ],
)
def test_malformed_trace_is_refused_in_one_line(unchecked, sample_trace, change, message):
    record = sample_trace.to_dict() | change
    with pytest.raises(RegardError, match=message) as error:
        Trace.from_json(json.dumps(record))
    assert "\n" not in str(error.value)


def test_error_names_the_malformed_part_once(sample_trace):
    record = sample_trace.to_dict()
    record["maps"][0]["name"] = 7
    with pytest.raises(RegardError, match="^the trace cannot be read: map 0: name must be a str"):
        Trace.from_dict(record)


@pytest.mark.parametrize("text", ["", "[]", "3", "not JSON"])
def test_text_that_is_no_trace_is_refused(text):
    with pytest.raises(RegardError, match="a trace must be JSON|not a trace"):
        Trace.from_json(text)


@pytest.mark.parametrize("call", [-1, 0.5, "1", None, True])
def test_call_index_that_is_no_index_is_refused(sample_trace, call):
    record = sample_trace.to_dict()
    record["maps"][0]["call"] = call
    with pytest.raises(RegardError, match="map 0: call must be an integer from 0 upwards"):
        Trace.from_json(json.dumps(record))


MALFORMED_MAPS = {
    "scale": ({"weights": {"scale": -1.0}}, "weights must have a scale above 0"),
    "heads": ({"heads": [0.5] * 2}, "heads of decoder.* must be 2 head indices"),
    "nested heads": ({"heads": [{}, {}]}, "heads of decoder.* must be 2 head indices"),
    "top_keys": ({"summary": {"top_keys": 250}}, "top_keys of decoder.* must be from 0 to 4"),
    "no tiles": ({"summary": {"tiles": [0]}}, "tiles of decoder.* must have 3 axes"),
    "one tile": ({"summary": {"tiles": []}}, "tiles of decoder.* must have 3 axes"),
    "received": ({"summary": {"received": []}}, "received of decoder.* must have 2 axes"),
    "name": ({"name": ["<b>"]}, "name must be a string"),
    "query_inputs": ({"query_inputs": ["<b>"]}, "query_inputs of decoder.* must be the name"),
    "queries": ({"queries": {}}, "queries of decoder.* must be the name of a token list"),
}


def changed_array(record, change):
    """Change keys of an array's record (dict), all its values (int) or its shape (list)."""
    if isinstance(change, dict):
        return record | change
    if isinstance(change, int):
        return quantize(np.full_like(dequantize(record, "array", as_integers=True), change))
    return quantize(np.zeros(change))


@pytest.mark.parametrize("case", MALFORMED_MAPS)
def test_malformed_map_is_refused_when_the_file_is_read(unchecked, tmp_path, sample_trace, case):
    change, message = MALFORMED_MAPS[case]
    record = sample_trace.to_dict()
    index = 0 if "weights" in change else len(record["maps"]) - 1
    changed = record["maps"][index]
    for name, value in change.items():
        if name == "weights":
            changed[name] = changed_array(changed[name], value)
        elif name == "summary":
            arrays = {part: changed_array(changed[name][part], new) for part, new in value.items()}
            changed[name] |= arrays
        else:
            changed[name] = value
    (tmp_path / "a.json").write_text(json.dumps(record), encoding="utf-8")
    message = f"a.json: the trace cannot be read: map {index}: {message}"
    with pytest.raises(RegardError, match=message):
        load_trace(tmp_path / "a.json")


@pytest.mark.parametrize(
    "change, message",
    [
        ({"words": ["a", "b", [1], 2, 3]}, "words must be integers"),
        ({"special": [0.5]}, "special and padding must be positions"),
        ({"log_probs": ["a", None, None, None, None]}, "log_probs must be numbers"),
        ({"log_probs": [float("nan")] * 5}, "log_probs must be finite or null"),
    ],
)
def test_malformed_tokens_are_refused(unchecked, sample_trace, change, message):
    record = sample_trace.to_dict()
    record["tokens"]["source"] |= change
    with pytest.raises(RegardError, match=f"the trace cannot be read: tokens 'source': {message}"):
        Trace.from_dict(record)


def test_weights_that_are_not_finite_cannot_be_written(tmp_path, sample_trace):
    broken = replace(sample_trace.maps[0], weights=np.full((2, 5, 5), np.nan))
    trace = replace(sample_trace, maps=(broken,))
    with pytest.raises(RegardError, match="a.json: .*map 'encoder.0': values must be finite"):
        trace.save(tmp_path / "a.json")


def test_log_probs_that_are_not_finite_cannot_be_written(tmp_path):
    tokens = TokenList(("a",), log_probs=(-np.inf,))
    message = "cannot write .*a.json: .*tokens 'text': log_probs must be finite"
    with pytest.raises(RegardError, match=message):
        Trace(tokens={"text": tokens}, maps=()).save(tmp_path / "a.json")
    assert not (tmp_path / "a.json").exists()


@pytest.mark.parametrize(
    "name, message",
    [
        ("nothing", "query_inputs of cross.0 are 'nothing', but the token lists are "),
        ("source", "cross.0 has 4 queries, but there are 5 source tokens"),
    ],
)
def test_unfit_query_inputs_are_refused(sample_trace, name, message):
    record = sample_trace.to_dict()
    record["maps"][2]["query_inputs"] = name
    with pytest.raises(RegardError, match=f"the trace cannot be read: .*{message}") as error:
        Trace.from_dict(record)
    assert "\n" not in str(error.value)


def test_query_inputs_are_optional(sample_trace):
    record = sample_trace.to_dict()
    del record["maps"][2]["query_inputs"]
    assert Trace.from_dict(record).maps[2].query_inputs is None
