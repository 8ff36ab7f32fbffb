import os
from contextlib import suppress
from types import SimpleNamespace

import pytest
from rich.progress import TextColumn

from regard._support.progress import IgnoreBrokenPipe, ProgressDisplay, format_duration, track


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test moves; other modules keep the real one, which other threads need."""
    now = [0.0]
    monkeypatch.setattr("regard._support.progress.time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def slowly(items, clock, seconds):
    for item in items:
        clock[0] += seconds
        yield item


def test_short_job_yields_its_items_and_prints_nothing(clock, capsys):
    assert list(track(["a", "b"], "letters")) == ["a", "b"]
    assert capsys.readouterr().err == ""


def test_plain_lines_show_count_and_time_left_every_ten_seconds(clock, capsys):
    assert len(list(track(slowly(range(4000), clock, 0.01), "pairs", 4000))) == 4000
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "1,001 of 4,000 pairs, 30 s left"
    assert len(lines) == 3


def test_plain_line_without_a_total_shows_the_time_elapsed(clock, capsys):
    list(track(slowly([["a"] * 30, ["b"] * 12], clock, 8.0), "sentences", size=len))
    assert capsys.readouterr().err == "42 sentences, in 16 s\n"


def test_invisible_track_prints_nothing(clock, capsys):
    assert list(track(slowly("ab", clock, 60.0), "letters", visible=False)) == ["a", "b"]
    assert capsys.readouterr().err == ""


def test_items_are_yielded_without_stderr(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    assert list(track(iter("abc"), "letters")) == ["a", "b", "c"]


def test_terminal_shows_a_bar_instead_of_lines(clock, monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for _ in track(slowly(range(3), clock, 60.0), "pairs", 3):
        pass
    shown = capsys.readouterr().err
    assert "3 pairs" in shown and "100%" in shown
    assert "left" not in shown  # no plain line beside the bar


def test_display_prints_lines_through_echo_even_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    lines = []
    with ProgressDisplay(TextColumn("step"), total=3, echo=lines.append) as display:
        display.update(1, description="one")
        display.print("a line")
    assert not display.is_live and lines == ["a line"]
    assert capsys.readouterr().err == ""


def test_line_is_due_once_per_interval(clock):
    with ProgressDisplay(total=3) as display:
        due = []
        for now in (0.0, 10.0, 10.1, 10.2, 20.0, 20.2):
            clock[0] = now
            due.append(display.is_line_due())
    assert due == [False, False, True, False, False, True]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (89, "89 s"), (600, "10 min"), (9000, "2.5 h")]
)
def test_duration_is_formatted_with_one_unit(seconds, text):
    assert format_duration(float(seconds)) == text


def test_broken_pipe_is_ignored():
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(BrokenPipeError), os.fdopen(os.dup(writing), "w") as stream:
        stream.write("text")
    stream = os.fdopen(writing, "w")
    ignoring = IgnoreBrokenPipe(stream)
    assert ignoring.write("text") == 4
    ignoring.flush()
    assert ignoring.fileno() == writing and not ignoring.isatty()
    with suppress(BrokenPipeError):
        stream.close()
