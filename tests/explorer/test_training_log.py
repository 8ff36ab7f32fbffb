import json

import pytest

from helpers.explorer import error_message
from regard.config import RunConfig
from regard.errors import RegardError
from regard.explorer.training_log import MAX_CHUNK_BYTES, last_step, read_log
from regard.runs import RunFolder
from regard.runs.log import format_line


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_settings(RunConfig(), {"texts": ["t"], "fingerprints": ["f"]})
    return folder


def text(folder, *entries):
    return "".join(format_line(entry, folder.read_id()) for entry in entries)


def write(folder, *entries, mode="a"):
    with folder.log.open(mode) as file:
        file.write(text(folder, *entries))


def test_log_is_read_incrementally_from_the_returned_offset(folder):
    write(folder, {"step": 1}, {"step": 2})
    first = read_log(folder, 0)
    offset = first["next_offset"]
    assert first["records"] == [{"step": 1}, {"step": 2}]
    assert read_log(folder, offset) == {"records": [], "next_offset": offset, "finished": False}
    write(folder, {"step": 3})
    assert read_log(folder, offset)["records"] == [{"step": 3}]


def test_incomplete_line_is_left_until_it_is_complete(folder):
    line = text(folder, {"step": 2})
    folder.log.write_text(text(folder, {"step": 1}) + line[:9])
    first = read_log(folder, 0)
    assert first["records"] == [{"step": 1}]
    with folder.log.open("a") as file:
        file.write(line[9:])
    assert read_log(folder, first["next_offset"])["records"] == [{"step": 2}]


def test_replaced_log_is_read_from_its_beginning(folder):
    write(folder, *[{"step": 1}] * 9)
    offset = read_log(folder, 0)["next_offset"]
    write(folder, {"step": 7}, mode="w")
    assert read_log(folder, offset)["records"] == [{"step": 7}]


def test_missing_log_has_no_records(folder):
    assert read_log(folder, 5) == {"records": [], "next_offset": 0, "finished": False}
    assert last_step(folder) == 0


def test_log_of_a_finished_run_must_have_its_end(folder):
    folder.model_card.write_text("done")
    write(folder, {"step": 1})
    with pytest.raises(RegardError, match=r"log\.jsonl is damaged: its end is missing"):
        read_log(folder, 0)
    write(folder, {"step": 1, "stop_reason": "the last step was reached"})
    assert read_log(folder, 0)["finished"] is True
    with folder.log.open("a") as file:
        file.write("{")
    with pytest.raises(RegardError, match=r"log\.jsonl is damaged: its end is missing"):
        read_log(folder, 0)


@pytest.mark.parametrize("line", ["nonsense", "[1]", '{"step": 3}', "7", "[" * 100_000, "\x00"])
def test_damaged_line_is_refused_by_its_position(folder, line):
    write(folder, {"step": 4})
    size = folder.log.stat().st_size
    with folder.log.open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(
        RegardError, match=rf"log\.jsonl is damaged at byte {size}: it has no check"
    ):
        read_log(folder, 0)
    assert last_step(folder) == 4


def test_log_without_newlines_is_refused(folder):
    folder.log.write_bytes(bytes(MAX_CHUNK_BYTES + 7))
    with pytest.raises(RegardError, match=r"log\.jsonl is damaged: its end is missing"):
        read_log(folder, 0)


def test_non_finite_numbers_become_null(folder):
    infinite = float("inf")
    write(folder, {"step": 1, "loss": float("nan"), "best": [infinite, {"worst": -infinite}]})
    records = read_log(folder, 0)["records"]
    assert records == [{"step": 1, "loss": None, "best": [None, {"worst": None}]}]
    json.dumps(records, allow_nan=False)


def test_long_log_is_read_in_chunks(folder):
    count = 2 * MAX_CHUNK_BYTES // 1000
    write(folder, *({"step": step, "note": "x" * 1000} for step in range(count)))
    steps, offset = [], 0
    while records := read_log(folder, offset)["records"]:
        steps += [record["step"] for record in records]
        offset = read_log(folder, offset)["next_offset"]
    assert steps == list(range(count))
    assert last_step(folder) == count - 1


def test_log_of_a_run_is_served(client, tiny_run):
    first = client.get("/api/runs/tiny/log").json()
    assert first["records"] == RunFolder(tiny_run).read_log()
    assert first["finished"] is True
    rest = client.get("/api/runs/tiny/log", params={"offset": first["next_offset"]}).json()
    assert rest["records"] == []


@pytest.mark.parametrize("offset", [-1, "x", 10**30])
def test_invalid_offset_is_422(client, offset):
    response = client.get("/api/runs/tiny/log", params={"offset": offset})
    assert error_message(response, 422).startswith("offset must be ")
