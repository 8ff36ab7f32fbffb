import json

import pytest

from regard.explorer.training_log import CHUNK, last_step, log
from regard.runs import RunFolder


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path)


def write(folder, *lines, mode="a"):
    with folder.log.open(mode) as file:
        file.write("".join(lines))


def test_a_log_is_read_on_from_where_the_reader_stopped(folder):
    write(folder, '{"step": 1}\n', '{"step": 2}\n')
    first = log(folder, 0)
    assert first["records"] == [{"step": 1}, {"step": 2}]
    assert log(folder, first["next_offset"]) == {
        "records": [],
        "next_offset": first["next_offset"],
        "finished": False,
    }
    write(folder, '{"step": 3}\n')
    assert log(folder, first["next_offset"])["records"] == [{"step": 3}]


def test_a_torn_line_is_left_until_it_is_whole(folder):
    write(folder, '{"step": 1}\n{"st')
    torn = log(folder, 0)
    assert torn["records"] == [{"step": 1}]
    write(folder, 'ep": 2}\n')
    assert log(folder, torn["next_offset"])["records"] == [{"step": 2}]


def test_a_log_that_was_begun_anew_is_read_from_its_beginning(folder):
    write(folder, '{"step": 1}\n' * 9)
    place = log(folder, 0)["next_offset"]
    write(folder, '{"step": 7}\n', mode="w")
    assert log(folder, place)["records"] == [{"step": 7}]


def test_a_run_without_a_log_has_no_records_and_one_with_a_card_is_finished(folder):
    assert log(folder, 5) == {"records": [], "next_offset": 0, "finished": False}
    folder.model_card.write_text("done")
    assert log(folder, 0)["finished"] is True


@pytest.mark.parametrize("line", ["nonsense", "[1]", '{"a":', "7", "[" * 100_000, "\x00"])
def test_lines_that_are_no_records_are_passed_over(folder, line):
    write(folder, f'{line}\n{{"step": 4}}\n')
    assert log(folder, 0)["records"] == [{"step": 4}]


def test_a_loss_that_is_no_number_can_still_be_said(folder):
    write(folder, '{"step": 1, "loss": NaN, "best": [Infinity, {"worst": -1e999}]}\n')
    records = log(folder, 0)["records"]
    assert records == [{"step": 1, "loss": None, "best": [None, {"worst": None}]}]
    json.dumps(records, allow_nan=False)


def test_a_long_log_comes_in_parts_that_make_the_whole(folder):
    lines = [f'{{"step": {n}, "note": "{"x" * 1000}"}}\n' for n in range(2 * CHUNK // 1000)]
    write(folder, *lines)
    steps, place = [], 0
    while part := log(folder, place)["records"]:
        steps += [record["step"] for record in part]
        place = log(folder, place)["next_offset"]
    assert steps == list(range(len(lines)))
    assert last_step(folder) == len(lines) - 1


def test_the_log_of_a_run_is_served(client, trained, refused):
    lines = RunFolder(trained).log.read_text().splitlines()
    told = client.get("/api/runs/small/log").json()
    assert told["records"] == [json.loads(line) for line in lines]
    assert told["finished"] is True
    again = client.get("/api/runs/small/log", params={"offset": told["next_offset"]}).json()
    assert again["records"] == []
    for offset in (-1, "x", 10**30):
        sentence = refused(client.get("/api/runs/small/log", params={"offset": offset}), 422)
        assert sentence.startswith("offset must be ")
