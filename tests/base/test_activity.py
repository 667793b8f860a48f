"""Long work says on a terminal what it does, nowhere else, and in the bar of a command where there is one."""

import io
import sys
import time

import pytest

from linkwright.base import activity as activities
from linkwright.base.activity import activity, shown_by


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A stream for stderr that is a terminal; set in the test itself, since pytest sets its own before."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    return stream


def wait_for(terminal: Terminal, text: str) -> bool:
    end = time.monotonic() + 20.0
    while text not in terminal.getvalue() and time.monotonic() < end:
        time.sleep(0.01)
    return text in terminal.getvalue()


def test_long_work_is_shown_with_its_innermost_name(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    monkeypatch.setattr(activities, "WAIT", 0.01)
    with activity("assembling"), activity("compiling step") as work:
        work.at(1, 4)
        assert work.progress is not None
        assert wait_for(terminal, "compiling step")


def test_short_work_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    with activity("compiling step"):
        pass
    time.sleep(0.05)
    assert terminal.getvalue() == ""


def test_nothing_is_shown_and_reported_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(activities, "WAIT", 0.0)
    with activity("compiling step") as work:
        assert work.progress is None
        time.sleep(0.05)
    assert stream.getvalue() == ""


def test_an_interruption_passes_and_ends_the_display(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    monkeypatch.setattr(activities, "WAIT", 0.01)

    def work() -> None:
        with activity("compiling step"):
            assert wait_for(terminal, "compiling step")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert activities._activities == []
    assert activities._display == []


def test_the_bar_of_a_command_shows_activities_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    lines = []
    with shown_by(lambda *line: lines.append(line)), activity("compiling step") as work:
        work.at(2, 3)
    assert lines == [("compiling step", 0, 0), ("compiling step", 2, 3)]
    assert terminal.getvalue() == ""
