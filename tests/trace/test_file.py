import gzip
import subprocess
import sys

import pytest

from helpers.sample_trace import FIXTURE
from helpers.traces import assert_same_trace
from regard import RegardError
from regard.trace import TokenList, Trace, load_trace, serialization


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_trace_is_restored_from_a_file(tmp_path, sample_trace, name):
    sample_trace.save(tmp_path / name)
    assert_same_trace(load_trace(tmp_path / name), sample_trace)
    is_compressed = (tmp_path / name).read_bytes()[:2] == b"\x1f\x8b"
    assert is_compressed == name.endswith("gz")


def test_equal_traces_give_equal_files(tmp_path, sample_trace):
    for name in ("a.gz", "b.gz"):
        sample_trace.save(tmp_path / name)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
@pytest.mark.parametrize("share", [0.3, 0.999])
def test_truncated_file_is_refused(tmp_path, sample_trace, name, share):
    sample_trace.save(tmp_path / name)
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(data[: int(len(data) * share)])
    with pytest.raises(RegardError, match=f"{name}.*truncated"):
        load_trace(tmp_path / name)


@pytest.mark.parametrize(
    "data", [b"\x80\x04\x95pickle", b"PK\x03\x04", gzip.compress(b"\xff", mtime=0)]
)
def test_file_of_another_format_is_refused(tmp_path, data):
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(RegardError, match="a is not a trace|a: a trace must be JSON"):
        load_trace(tmp_path / "a")


def test_missing_file_and_folder_are_named(tmp_path):
    with pytest.raises(RegardError, match="cannot read .*nowhere.json: No such file"):
        load_trace(tmp_path / "nowhere.json")
    with pytest.raises(RegardError, match="cannot write"):
        load_trace(FIXTURE).save(tmp_path / "nowhere" / "a.json")


def test_reading_a_trace_does_not_import_torch():
    code = f"import sys, regard; regard.load_trace({str(FIXTURE)!r}); print('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "False\n"


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_lone_surrogates_round_trip_through_a_file(tmp_path, name):
    tokens = {"text": TokenList(("\udfff", "\\udfff", "猫"))}
    trace = Trace(tokens=tokens, maps=(), title="\ud800")
    trace.save(tmp_path / name)
    restored = load_trace(tmp_path / name)
    assert (restored.tokens, restored.title) == (trace.tokens, trace.title)


def test_decompression_bomb_is_refused(tmp_path, sample_trace, monkeypatch):
    sample_trace.save(tmp_path / "a.json.gz")
    size = len(sample_trace.to_json().encode())
    monkeypatch.setattr(serialization, "MAX_TRACE_BYTES", size)
    load_trace(tmp_path / "a.json.gz")
    monkeypatch.setattr(serialization, "MAX_TRACE_BYTES", size - 1)
    with pytest.raises(RegardError, match=r"a.json.gz must have at most .* when decompressed"):
        load_trace(tmp_path / "a.json.gz")
