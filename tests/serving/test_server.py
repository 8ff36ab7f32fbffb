import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from urllib.error import HTTPError
from urllib.parse import urlsplit

import pytest
import torch
from libretranslatepy import LibreTranslateAPI
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from regard.cli import app
from regard.errors import RegardError
from regard.runs import RunFolder, load, parameters
from regard.serving import LanguagePair, ServedRun, serve
from regard.serving.served_run import LoadedRun

pytestmark = pytest.mark.server

TOKEN = "a-token-of-this-test"
WAIT_SECONDS = 120  # on a busy machine


def post(url, q, token=TOKEN):
    """Translate over a connection of its own; return status and body."""
    body = json.dumps({"q": q, "source": "en", "target": "fr", "api_key": token})
    status, text = request(url, "POST", "/translate", body, {"Content-Type": "application/json"})
    return status, json.loads(text)


def request(url, method, path, body=None, headers=None):
    with closing(HTTPConnection(urlsplit(url).netloc, timeout=WAIT_SECONDS)) as connection:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, response.read().decode()


def until(condition):
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.02)


@pytest.fixture
def blocked(monkeypatch):
    """Make translation wait for `proceed`; yield it and the sizes of the batches so far."""
    sizes, proceed, translate = [], threading.Event(), LoadedRun.translate

    def translate_when_allowed(self, sources, n_best=1, should_stop=None):
        if should_stop is not None:  # of a request
            sizes.append(len(sources))
            assert proceed.wait(WAIT_SECONDS)
        return translate(self, sources, n_best, should_stop)

    monkeypatch.setattr(LoadedRun, "translate", translate_when_allowed)
    yield proceed, sizes
    proceed.set()


def change_parameters(path):
    """Save other parameters of the run, as another training would."""
    folder, run = RunFolder(path), load(path, engine="torch")
    tensors = {
        name: torch.randn_like(each) for name, each in parameters.state_of(run.model).items()
    }
    identity = folder.identify(folder.model, run.tokenizers)
    parameters.save(folder.model, tensors, identity=identity)


def test_libretranslatepy_translates_and_lists_languages(serve_in_thread, tiny_run):
    expected = str(load(tiny_run).translate("the cat sees the dog"))
    with serve_in_thread(tiny_run, token=TOKEN) as (url, _):
        client = LibreTranslateAPI(url, api_key=TOKEN)
        assert client.translate("the cat sees the dog", "en", "fr") == expected
        assert [each["code"] for each in client.languages()] == ["en", "fr"]
        for language, status, key in [("de", 400, TOKEN), ("fr", 401, "wrong")]:
            with pytest.raises(HTTPError, match=f"{status}"):
                LibreTranslateAPI(url, api_key=key).translate("the cat", "en", language)


def test_concurrent_requests_are_translated_in_one_batch(serve_in_thread, tiny_run, blocked):
    proceed, sizes = blocked
    expected = [str(each) for each in load(tiny_run, engine="torch").translate(["a cat"] * 9)]
    with serve_in_thread(tiny_run, engine="torch") as (url, server), ThreadPoolExecutor(9) as pool:
        first = pool.submit(post, url, "a cat")
        until(lambda: sizes)
        others = [pool.submit(post, url, "a cat") for _ in range(8)]
        until(lambda: len(server.server_state.tasks) == 9)
        time.sleep(0.2)  # the last of them may still be parsed
        proceed.set()
        answers = [each.result() for each in (first, *others)]
    assert answers == [(200, {"translatedText": text}) for text in expected]
    assert sizes == [1, 8]


def test_requests_beyond_the_queue_are_refused_and_the_others_answered(
    serve_in_thread, tiny_run, blocked
):
    proceed, sizes = blocked
    options = {"engine": "torch", "max_batch_size": 1, "max_queue_size": 2}
    with serve_in_thread(tiny_run, **options) as (url, _), ThreadPoolExecutor(5) as pool:
        first = pool.submit(post, url, "a cat")
        until(lambda: sizes)
        others = [pool.submit(post, url, "a cat") for _ in range(4)]
        until(lambda: sum(each.done() for each in others) == 2)
        refused = [each.result() for each in others if each.done()]
        proceed.set()
        statuses = [each.result()[0] for each in (first, *others)]
    message = {"error": "the queue is full; try again in a moment."}
    assert refused == [(503, message)] * 2
    assert sorted(statuses) == [200] * 3 + [503] * 2


def test_shutdown_finishes_requests_in_progress(serve_in_thread, tiny_run, blocked):
    proceed, sizes = blocked
    with ThreadPoolExecutor(1) as pool:
        with serve_in_thread(tiny_run, engine="torch") as (url, server):
            answer = pool.submit(post, url, "a cat")
            until(lambda: sizes)
            server.should_exit = True
            time.sleep(0.3)  # the shutdown has begun
            proceed.set()
        assert answer.result()[0] == 200


def test_retrained_run_is_served_without_a_restart(serve_in_thread, run_copy):
    before = str(load(run_copy, engine="torch").translate("the cat sees the dog"))
    with serve_in_thread(run_copy, engine="torch", reload_seconds=0.05) as (url, _):
        assert post(url, "the cat sees the dog") == (200, {"translatedText": before})
        change_parameters(run_copy)
        after = str(load(run_copy, engine="torch").translate("the cat sees the dog"))
        assert after != before
        until(lambda: post(url, "the cat sees the dog") == (200, {"translatedText": after}))


def test_retrained_run_is_converted_again(run_copy, tmp_path, monkeypatch):
    pytest.importorskip("ctranslate2", reason="the extra fast is not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    manifest = run_copy / "ctranslate2" / "manifest.txt"
    text = "the cat sees the dog"
    served = ServedRun(run_copy, LanguagePair("en", "fr"), "ctranslate2", beam_size=1)
    sources, before = served.current.encode([text]), manifest.read_bytes()
    change_parameters(run_copy)
    expected = str(load(run_copy, engine="torch").translate(text, beam_size=1))
    assert served.current.translate(sources) != [[expected]]
    assert served.reload_if_changed()
    assert served.current.translate(sources) == [[expected]]
    assert manifest.read_bytes() != before


def test_verbose_server_prints_the_engine_and_the_reason(run_copy, serve_in_thread, capsys):
    with serve_in_thread(run_copy, engine="torch", verbose=True):
        line = "en:fr: engine: TorchEngine(), since the engine is torch\n"
        assert capsys.readouterr().err == line


def test_damaged_or_removed_run_keeps_being_served(run_copy, caplog):
    served = ServedRun(run_copy, LanguagePair("en", "fr"), "torch")
    loaded, model = served.current, RunFolder(run_copy).model
    content = model.read_bytes()
    model.write_bytes(content[:-8])
    assert not served.reload_if_changed() and served.current is loaded
    assert "keeping the loaded model of en:fr" in caplog.text
    model.unlink()
    assert not served.reload_if_changed() and served.current is loaded
    model.write_bytes(content)
    assert served.reload_if_changed() and served.current is not loaded
    assert not served.reload_if_changed()


def test_requests_in_progress_finish_with_the_model_they_began_with(tiny_run):
    first, second = (ServedRun(tiny_run, LanguagePair("en", "fr"), "torch") for _ in range(2))
    assert len({(first.current, 1), (second.current, 1), (first.current, 1)}) == 2


@pytest.fixture
def start_command(tmp_path):
    """Return a function that starts `regard serve` and returns the process and its URL."""
    processes = []

    def start(*arguments):
        log = tmp_path / "output.txt"
        with log.open("w") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "regard", "serve", *map(str, arguments), "--port", "0"],
                stdout=output,
                stderr=subprocess.STDOUT,
                env={
                    **os.environ,
                    "REGARD_TOKEN": TOKEN,
                    "OMP_NUM_THREADS": "1",
                    "TMPDIR": str(tmp_path),
                },
            )
        processes.append(process)
        until(lambda: "http://" in log.read_text() or process.poll() is not None)
        text = log.read_text()
        assert process.poll() is None, text
        assert TOKEN not in text  # a token that was given is not printed
        return process, re.search(r"http://\S+", text)[0]

    yield start
    for process in processes:
        process.terminate()
        process.wait(WAIT_SECONDS)


def test_serve_command_translates(start_command, tiny_run):
    process, url = start_command(f"{tiny_run}=en:de")
    client = LibreTranslateAPI(url, api_key=TOKEN)
    expected = str(load(tiny_run).translate("the cat sees the dog"))
    assert client.translate("the cat sees the dog", "en", "de") == expected
    process.send_signal(signal.SIGTERM)
    assert process.wait(WAIT_SECONDS) == 0


@pytest.mark.train
def test_worker_processes_share_the_port_and_their_metrics(start_command, tiny_run):
    process, url = start_command(tiny_run, "--workers", 2, "--engine", "torch")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: post(url, ["a cat", "a dog"])[0], range(12)))
    assert answers == [200] * 12
    headers = {"Authorization": f"Bearer {TOKEN}"}
    families = text_string_to_metric_families(request(url, "GET", "/metrics", headers=headers)[1])
    totals = {sample.name: sample.value for family in families for sample in family.samples}
    assert totals["regard_sentences_total"] == 24
    process.send_signal(signal.SIGTERM)
    assert process.wait(WAIT_SECONDS) == 0


@pytest.mark.train
def test_worker_that_dies_is_replaced_and_its_gauges_forgotten(start_command, tiny_run, tmp_path):
    def gauges():
        return set(tmp_path.glob("regard-metrics-*/gauge_livesum_*.db"))

    _, url = start_command(tiny_run, "--workers", 2, "--engine", "torch")
    before = gauges()
    assert len(before) == 2
    dead = min(before)
    os.kill(int(dead.stem.rpartition("_")[2]), signal.SIGKILL)
    until(lambda: len(gauges()) == 2 and dead not in gauges())
    assert post(url, ["a cat"])[0] == 200


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing"], "missing is not a run"),
        (["RUN", "--allow-host", "https://a.example"], "--allow-host must be names such as"),
        (["RUN", "--allow-host", "a.example:443"], "--allow-host must be names such as"),
        (["RUN", "--host", "0.0.0.0", "--no-token"], "--host 0.0.0.0 needs a token"),
        (["RUN", "--token", "short"], "token must have at least 16 ASCII characters, but it has 5"),
        (
            ["RUN", "--token", "a token of four words"],
            "token must be ASCII characters without spaces",
        ),
        (["RUN", "--token", TOKEN, "--no-token"], "leave one of the two out"),
        (["RUN", "RUN"], "each run must have other languages, but two have en:fr"),
        (["RUN", "RUN", "--workers", "2"], "each run must have other languages, but two have en:"),
        (["RUN", "--engine", "ctranslate3"], "Did you mean 'ctranslate2'?"),
        (["RUN", "--quantization", "int9"], "Did you mean 'int8'?"),
    ],
)
def test_command_refuses_bad_arguments_in_one_line(tiny_run, arguments, message):
    arguments = [str(tiny_run) if each == "RUN" else each for each in arguments]
    result = CliRunner().invoke(app, ["serve", *arguments, "--port", "0"])
    assert result.exit_code == 1, result.output
    assert message in result.stderr and result.stderr.count("\n") == 1


def test_run_that_workers_cannot_load_is_reported_without_a_traceback(run_copy):
    RunFolder(run_copy).model.unlink()
    command = [sys.executable, "-m", "regard", "serve", str(run_copy), "--workers", "2"]
    result = subprocess.run(
        [*command, "--port", "0"], capture_output=True, text=True, timeout=WAIT_SECONDS, check=False
    )
    assert result.returncode == 1
    assert "has no parameters yet" in result.stderr
    assert "a worker ended with exit code 1 before it could serve" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("name", ["max_batch_size", "max_queue_size"])
def test_sizes_below_one_are_refused(name):
    with pytest.raises(RegardError, match=f"{name} must be 1 or more, but it is 0"):
        serve(["demo-model"], port=0, engine="torch", **{name: 0})
