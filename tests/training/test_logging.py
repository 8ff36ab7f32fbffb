import json
from types import SimpleNamespace

from regard.training.logging import Bar, Log


def test_a_log_forgets_what_comes_after_the_step_it_goes_on_from(tmp_path):
    path = tmp_path / "log.jsonl"
    log = Log(path, 0)
    for step in (2, 4, 6):
        log.add(step=step, loss=step / 2)
    with path.open("a") as file:
        file.write('{"step": 8, "lo')  # torn
    Log(path, 4).add(step=5)
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [2, 4, 5]


def test_plain_lines_tell_step_loss_speed_and_time_left(monkeypatch):
    lines, now = [], [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr("regard.training.logging.time", clock)
    with Bar(10, 40, lines.append) as bar:
        for step in range(11, 21):
            now[0] += 2.0
            bar.step(step, 40, loss=3.0, tokens=100)
        bar.note("validated")
    assert lines[0] == "step 16/40 · loss 3.000 · 50 tokens/s · 48 s left"
    assert lines[-1] == "validated"
    assert len(lines) == 2  # one line in ten seconds
