"""What long work is doing, shown on a terminal once it takes longer than two seconds; nothing is shown elsewhere."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from linkwright.base.locks import Lock

WAIT = 2.0  # seconds before anything is shown
_EVERY = 0.1  # seconds between two looks at how far the work is

#: Called with what is done, how much of it is done, and how much there is (0 where that is not known).
Show = Callable[[str, float, float], None]


class Activity:
    """Work that goes on: its name, and how far it is."""

    def __init__(self, name: str, *, watched: bool = False) -> None:
        self.name, self.done, self.total, self.watched = name, 0.0, 0.0, watched

    @property
    def progress(self) -> Callable[[float, float], None] | None:
        """`at` where somebody looks at it; None else, so that the work need not stop to report."""
        return self.at if self.watched else None

    def at(self, done: float, total: float, name: str = "") -> None:
        """So much of so much is done, and what is done now."""
        self.name, self.done, self.total = name or self.name, done, total
        if _bars:
            _bars[-1](self.name, done, total)


_lock = Lock()
_activities: list[Activity] = []  # the innermost last
_bars: list[Show] = []  # of commands, which show activities in place of a display of their own
_display: list[threading.Event] = []  # set when the display is to end


@contextmanager
def activity(name: str) -> Iterator[Activity]:
    """Work with a name, as in "compiling forward_dynamics", that a person at the terminal may wait for."""
    if _bars or sys.stderr is None or not sys.stderr.isatty():
        work = Activity(name, watched=bool(_bars))
        if _bars:
            work.at(0, 0)
        yield work
        return
    work = Activity(name, watched=True)
    with _lock:
        _activities.append(work)
        if not _display:
            _display.append(threading.Event())
            threading.Thread(target=_shown, args=(_display[0],), name="linkwright-activity", daemon=True).start()
    try:
        yield work
    finally:
        with _lock:
            if work in _activities:  # not in a child that was forked inside the block
                _activities.remove(work)
            if not _activities and _display:
                _display.pop().set()


@contextmanager
def shown_by(show: Show) -> Iterator[None]:
    """While the block runs, activities are shown by this function."""
    _bars.append(show)
    try:
        yield
    finally:
        if show in _bars:
            _bars.remove(show)


def _shown(end: threading.Event) -> None:
    """In a thread of its own: wait, then show the innermost activity until the last has ended."""
    if end.wait(WAIT):
        return
    from rich.console import Console  # weight: rich
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # weight: rich

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True, markup=False), transient=True) as bar:
        task = bar.add_task("", total=None)
        while not end.wait(_EVERY):
            with _lock:
                work = _activities[-1] if _activities else None
            if work is not None:
                bar.update(task, description=work.name, total=work.total or None, completed=work.done)


def _forget() -> None:
    """In a forked child, which has none of the threads that work or show."""
    for store in (_activities, _bars, _display):
        store.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
