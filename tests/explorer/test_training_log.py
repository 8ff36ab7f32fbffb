import json

import pytest

from helpers.explorer import error_message
from regard.explorer.training_log import MAX_CHUNK_BYTES, last_step, read_log
from regard.runs import RunFolder


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path)


def write(folder, *lines, mode="a"):
    with folder.log.open(mode) as file:
        file.write("".join(lines))


def test_log_is_read_incrementally_from_the_returned_offset(folder):
    write(folder, '{"step": 1}\n', '{"step": 2}\n')
    first = read_log(folder, 0)
    offset = first["next_offset"]
    assert first["records"] == [{"step": 1}, {"step": 2}]
    assert read_log(folder, offset) == {"records": [], "next_offset": offset, "finished": False}
    write(folder, '{"step": 3}\n')
    assert read_log(folder, offset)["records"] == [{"step": 3}]


def test_incomplete_line_is_left_until_it_is_complete(folder):
    write(folder, '{"step": 1}\n{"st')
    first = read_log(folder, 0)
    assert first["records"] == [{"step": 1}]
    write(folder, 'ep": 2}\n')
    assert read_log(folder, first["next_offset"])["records"] == [{"step": 2}]


def test_replaced_log_is_read_from_its_beginning(folder):
    write(folder, '{"step": 1}\n' * 9)
    offset = read_log(folder, 0)["next_offset"]
    write(folder, '{"step": 7}\n', mode="w")
    assert read_log(folder, offset)["records"] == [{"step": 7}]


def test_missing_log_has_no_records(folder):
    assert read_log(folder, 5) == {"records": [], "next_offset": 0, "finished": False}


def test_run_with_model_card_is_finished(folder):
    folder.model_card.write_text("done")
    assert read_log(folder, 0)["finished"] is True


@pytest.mark.parametrize("line", ["nonsense", "[1]", '{"a":', "7", "[" * 100_000, "\x00"])
def test_malformed_lines_are_skipped(folder, line):
    write(folder, f'{line}\n{{"step": 4}}\n')
    assert read_log(folder, 0)["records"] == [{"step": 4}]


def test_non_finite_numbers_become_null(folder):
    write(folder, '{"step": 1, "loss": NaN, "best": [Infinity, {"worst": -1e999}]}\n')
    records = read_log(folder, 0)["records"]
    assert records == [{"step": 1, "loss": None, "best": [None, {"worst": None}]}]
    json.dumps(records, allow_nan=False)


def test_long_log_is_read_in_chunks(folder):
    count = 2 * MAX_CHUNK_BYTES // 1000
    write(folder, *(f'{{"step": {step}, "note": "{"x" * 1000}"}}\n' for step in range(count)))
    steps, offset = [], 0
    while records := read_log(folder, offset)["records"]:
        steps += [record["step"] for record in records]
        offset = read_log(folder, offset)["next_offset"]
    assert steps == list(range(count))
    assert last_step(folder) == count - 1


def test_log_of_a_run_is_served(client, tiny_run):
    lines = RunFolder(tiny_run).log.read_text().splitlines()
    first = client.get("/api/runs/tiny/log").json()
    assert first["records"] == [json.loads(line) for line in lines]
    assert first["finished"] is True
    rest = client.get("/api/runs/tiny/log", params={"offset": first["next_offset"]}).json()
    assert rest["records"] == []


@pytest.mark.parametrize("offset", [-1, "x", 10**30])
def test_invalid_offset_is_422(client, offset):
    response = client.get("/api/runs/tiny/log", params={"offset": offset})
    assert error_message(response, 422).startswith("offset must be ")
