import json

import numpy as np
import pytest

from regard.errors import RegardError
from regard.explorer import trace_files
from regard.explorer.limits import Limits
from regard.trace import build_translation_trace


def one(title):
    return build_translation_trace(
        ["a", title], ["c"], cross=[np.full((1, 1, 2), 0.5)], title=title
    )


SEVERAL = "".join(f"{one(title).to_json()}\n" for title in ("x", "\u2028 y \x85", "z"))


def test_each_line_of_a_file_is_a_trace():
    found = trace_files.traces(SEVERAL)
    assert [trace.title for trace in found] == ["x", "\u2028 y \x85", "z"]
    assert trace_files.trace(SEVERAL, 2).tokens["source"].pieces == ("a", "\u2028 y \x85")
    assert len(trace_files.traces(SEVERAL.replace("\n", "\r\n\r\n"))) == 3


def test_a_trace_that_is_spread_over_lines_is_one():
    spread = json.dumps(json.loads(one("x").to_json()), indent=2)
    assert spread.count("\n") > 20
    assert [trace.title for trace in trace_files.traces(spread)] == ["x"]


def test_a_line_that_is_no_trace_is_named_by_its_place():
    with pytest.raises(RegardError, match="trace 3 of 3: a trace must be JSON"):
        trace_files.traces(SEVERAL[:-9])
    with pytest.raises(RegardError, match="trace 2 of 2: this is JSON, but not a trace"):
        trace_files.trace(one("x").to_json() + "\n{}", 2)
    with pytest.raises(RegardError, match="trace 4 is wanted, but the file has 3"):
        trace_files.trace(SEVERAL, 4)


def test_more_than_can_be_listed_are_refused_and_one_is_never_too_many(monkeypatch):
    assert len(trace_files.traces(SEVERAL, Limits(max_traces_per_file=3))) == 3
    with pytest.raises(RegardError, match="a file may hold 2 traces .* this one holds 3 of"):
        trace_files.trace(SEVERAL, 1, Limits(max_traces_per_file=2))
    monkeypatch.setattr(trace_files, "LARGEST", 100)
    with pytest.raises(RegardError, match="of 100 characters together"):
        trace_files.traces(SEVERAL)
    assert len(trace_files.traces(one("x").to_json())) == 1
