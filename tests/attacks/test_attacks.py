"""Every attack is refused in one line, by every reader, in memory that the file's size bounds."""

import re
import resource
import shutil
import signal
from collections import deque
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from attacks.table import ATTACKS
from helpers.explorer import error_message
from regard import load, load_trace
from regard.cli import app
from regard.config import RunConfig, read_toml
from regard.data import read_pairs
from regard.errors import RegardError
from regard.explorer import RequestPool, RunRegistry, TraceRegistry, create_app
from regard.runs import RunFolder
from regard.training.preparation import open_data
from regard.training.setup import check_config

WATCHDOG_SECONDS = 120  # a reader that takes longer hangs, on any machine
SPARE_BYTES = 256 << 20  # for imports and the allocator
BYTES_PER_BYTE = 64  # of memory, for each of a file

NAMES = {
    kind: [n for n, a in ATTACKS.items() if a.kind == kind]
    for kind in sorted({attack.kind for attack in ATTACKS.values()})
}


class HangError(BaseException):
    """Not an Exception: no handler of regard may catch it."""


@contextmanager
def watchdog():
    """Fail if the block does not end."""

    def fail(*_):
        raise HangError("the reader hangs")

    previous = signal.signal(signal.SIGALRM, fail)
    signal.alarm(WATCHDOG_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


@contextmanager
def memory_limit(size):
    """Let the process grow by a multiple of a file's size and no more: then memory runs out."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + SPARE_BYTES + BYTES_PER_BYTE * size
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def size_of(path):
    """Return what a file or folder takes on disk; a sparse file takes nothing."""
    if path.is_dir():
        return sum(size_of(item) for item in path.iterdir())
    return 512 * path.lstat().st_blocks


def assert_refused(message, size, read):
    """Assert that a function of the Python API raises one line."""
    with watchdog(), memory_limit(size), pytest.raises(RegardError, match=message) as error:
        read()
    assert_one_line(str(error.value))


def assert_one_line(text):
    assert text.isprintable() and len(text) <= 1000, ascii(text)


def assert_command_refuses(message, size, *arguments):
    """Assert that a command prints one line to stderr and exits with code 1."""
    with watchdog(), memory_limit(size):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    lines = [line for line in result.stderr.splitlines() if line.startswith("regard: ")]
    assert (result.exit_code, len(lines)) == (1, 1), (result.stderr, result.exception)
    assert "Traceback" not in result.stderr
    assert re.search(message, lines[0]), lines[0]
    assert_one_line(lines[0])


@pytest.fixture(autouse=True)
def without_type_checks(unchecked):
    """Meet the messages that a user meets."""


@pytest.fixture
def attack_file(tmp_path):
    """Return a function that writes the file of an attack."""

    def write(name):
        attack = ATTACKS[name]
        path = tmp_path / f"attack{attack.suffix}"
        attack.write(path)
        return attack.message, path, size_of(path) if path.is_file() else 0

    return write


@pytest.fixture(scope="module")
def client():
    app = create_app(RunRegistry([]), TraceRegistry([]), RequestPool(workers=1))
    with TestClient(app, raise_server_exceptions=False) as client:
        client.post("/api/traces/open", content=b"{}")  # imports what it needs
        yield client


@pytest.mark.parametrize("name", NAMES["trace"])
def test_trace_is_refused(name, attack_file, client):
    message, path, size = attack_file(name)
    assert_refused(message, size, lambda: load_trace(path))
    assert_command_refuses(message, size, "explore", "--trace", path)
    if path.is_file() and path.stat().st_size < 2**30:
        data = path.read_bytes()
        for route in ("open", "contents"):
            with watchdog(), memory_limit(size):
                response = client.post(f"/api/traces/{route}", content=data)
            assert response.status_code in (413, 422), response.text
            assert re.search(message, error_message(response, response.status_code))


@pytest.mark.parametrize("name", NAMES["corpus"])
def test_corpus_is_refused(name, attack_file, tmp_path):
    message, path, size = attack_file(name)
    assert_refused(message, size, lambda: deque(read_pairs([path]), maxlen=0))
    assert_command_refuses(message, size, "doctor", path)
    assert_command_refuses(message, size, "train", path, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", NAMES["sources"])
def test_test_set_is_refused(name, attack_file, tiny_run):
    message, path, size = attack_file(name)
    run = load(tiny_run)
    assert_refused(message, size, lambda: run.evaluate(path, ["x"] * 20))
    reference = path.with_name("reference")
    reference.write_text("un chat\n" * 30)
    assert_command_refuses(message, size, "score", tiny_run, path, reference)


@pytest.mark.parametrize("name", NAMES["alignments"])
def test_alignments_are_refused(name, attack_file, tmp_path, tiny_run):
    message, path, size = attack_file(name)
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("a cat\tun chat\n" * 20)
    sides = [tmp_path / "en", tmp_path / "fr"]
    for side in sides:
        side.write_text("a cat\n" * 20)
    assert_refused(message, size, lambda: list(read_pairs([pairs], path)))
    options = ["--out", tmp_path / "run", "--alignments", path]
    assert_command_refuses(message, size, "train", pairs, *options)
    assert_command_refuses(message, size, "score", tiny_run, *sides, "--gold", path)


@pytest.mark.parametrize("name", NAMES["toml"])
def test_settings_file_is_refused(name, attack_file, tmp_path):
    message, path, size = attack_file(name)
    assert_refused(message, size, lambda: check_config(RunConfig.from_dict(read_toml(path))))
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("a cat\tun chat\n" * 20)
    options = ["--out", tmp_path / "run", "--settings", path]
    assert_command_refuses(message, size, "train", pairs, *options)
    assert not (tmp_path / "run").exists()


@pytest.fixture
def attacked_run(tiny_run, tmp_path):
    """Return a function that copies a run and carries out an attack on it."""

    def copy(name):
        path = shutil.copytree(tiny_run, tmp_path / "run")
        ATTACKS[name].write(path)
        return ATTACKS[name].message, path, size_of(path)

    return copy


@pytest.mark.parametrize("name", NAMES["run"])
def test_run_is_refused(name, attacked_run):
    message, path, size = attacked_run(name)
    assert_refused(message, size, lambda: load(path))
    assert_command_refuses(message, size, "translate", path, "a cat")
    assert_command_refuses(message, size, "look", path, "a cat")


@pytest.mark.parametrize("name", NAMES["training data"])
def test_training_data_is_refused(name, attacked_run):
    message, path, size = attacked_run(name)
    folder = RunFolder(path)
    config, _ = folder.read_settings()
    assert_refused(message, size, lambda: open_data(folder, config))


@pytest.mark.parametrize("name", NAMES["log"])
def test_log_is_refused(name, attacked_run):
    message, path, size = attacked_run(name)
    assert_refused(message, size, RunFolder(path).read_log)
    registry = RunRegistry([path])
    app = create_app(registry, TraceRegistry([]), RequestPool(workers=1))
    with TestClient(app, raise_server_exceptions=False) as client, watchdog():
        response = client.get(f"/api/runs/{registry.names[0]}/log")
        error_message(response, response.status_code)
        assert response.status_code in (404, 422)
        checkpoints = client.get(f"/api/runs/{registry.names[0]}/checkpoints")
        assert checkpoints.status_code in (200, 404, 422), checkpoints.text
