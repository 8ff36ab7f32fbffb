"""100 kills (SIGKILL) of a training: it resumes, and its final file has the same bytes.

70 arrive at a random time; 30 are injected at a call of fsync, rename or unlink, or leave a file
half-written.
"""

import json
import signal
import time
from itertools import count
from random import Random

import pytest

from helpers.fault_injection import POINTS, run_training
from helpers.tiny_corpus import write_tsv
from regard.runs import RunFolder

pytestmark = pytest.mark.slow

RANDOM_KILLS, INJECTED_KILLS, PARTS = 70, 30, 5


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_tsv(tmp_path_factory.mktemp("corpus") / "pairs.tsv")


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    """Bytes of the parameters of an undisturbed run, its seconds, and calls at each point."""
    out = tmp_path_factory.mktemp("whole")
    calls = {}
    for point in POINTS:
        start = time.monotonic()
        assert run_training(corpus, out / point, point, counts=out / "counts") == 0
        seconds = time.monotonic() - start
        calls[point] = json.loads((out / "counts").read_text())
    files = {RunFolder(out / point).model.read_bytes() for point in POINTS}
    assert len(files) == 1, "equal parameters give equal bytes"
    return files.pop(), seconds, calls


def assert_resumes(corpus, out, expected):
    assert run_training(corpus, out) == 0
    assert RunFolder(out).model.read_bytes() == expected
    assert not list(out.rglob("*.tmp"))
    assert RunFolder(out).read_log()[-1]["stop_reason"] == "the last step was reached"


@pytest.mark.parametrize("part", range(PARTS))
def test_kills_at_random_times(part, corpus, whole, tmp_path):
    expected, seconds, _ = whole
    random, kills, attempts = Random(part), 0, count()
    while kills < RANDOM_KILLS // PARTS:
        out = tmp_path / str(next(attempts))
        code = run_training(corpus, out, seconds=seconds * random.random())
        assert code in (0, -signal.SIGKILL)
        kills += code != 0  # the process may have ended before
        assert_resumes(corpus, out, expected)


@pytest.mark.parametrize("part", range(PARTS))
def test_kills_at_system_calls(part, corpus, whole, tmp_path):
    expected, _, calls = whole
    for kill in range(part, INJECTED_KILLS, PARTS):
        point = POINTS[kill % len(POINTS)]
        number = calls[point] * kill // INJECTED_KILLS  # spread from the first call to the last
        out = tmp_path / str(kill)
        assert run_training(corpus, out, point, number) == -signal.SIGKILL, (point, number)
        assert_resumes(corpus, out, expected)
