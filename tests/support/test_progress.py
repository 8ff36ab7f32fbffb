import os
from contextlib import suppress
from types import SimpleNamespace

import pytest

from regard._support.progress import IgnoreBrokenPipe, format_duration, track


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still unless it is moved.

    Only the counting reads it: other threads, such as a server's, need the real one.
    """
    now = [0.0]
    monkeypatch.setattr("regard._support.progress.time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def slowly(items, clock, seconds):
    for item in items:
        clock[0] += seconds
        yield item


def test_items_are_handed_on_as_they_are(clock, capsys):
    assert list(track(["a", "b"], "letters")) == ["a", "b"]
    assert capsys.readouterr().err == ""  # too short a job to speak of


def test_plain_lines_tell_how_many_are_done_and_the_time_left(clock, capsys):
    assert len(list(track(slowly(range(4000), clock, 0.01), "pairs", 4000))) == 4000
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "1,001 of 4,000 pairs, 30 s left"
    assert len(lines) == 3  # one in ten seconds


def test_without_a_total_the_time_so_far_is_told(clock, capsys):
    list(track(slowly([["a"] * 30, ["b"] * 12], clock, 8.0), "sentences", size=len))
    assert capsys.readouterr().err == "42 sentences, in 16 s\n"


def test_nothing_is_told_unless_it_is_to_be_shown(clock, capsys):
    assert list(track(slowly("ab", clock, 60.0), "letters", shown=False)) == ["a", "b"]
    assert capsys.readouterr().err == ""


def test_without_stderr_items_are_handed_on_all_the_same(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    assert list(track(iter("abc"), "letters")) == ["a", "b", "c"]


def test_a_terminal_gets_a_bar_that_is_gone_at_the_end(clock, monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for _ in track(slowly(range(3), clock, 60.0), "pairs", 3):
        pass
    told = capsys.readouterr().err
    assert "3 pairs" in told and "100%" in told
    assert "left" not in told  # no plain line beside the bar


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0 s"), (89, "89 s"), (600, "10 min"), (9000, "2.5 h")]
)
def test_durations_are_said_as_a_person_would(seconds, said):
    assert format_duration(float(seconds)) == said


def test_who_writes_goes_on_when_the_reader_has_left():
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(BrokenPipeError), os.fdopen(os.dup(writing), "w") as stream:
        stream.write("told")
    stream = os.fdopen(writing, "w")
    unheard = IgnoreBrokenPipe(stream)
    assert unheard.write("told") == 4
    unheard.flush()
    assert unheard.fileno() == writing and not unheard.isatty()
    with suppress(BrokenPipeError):
        stream.close()
