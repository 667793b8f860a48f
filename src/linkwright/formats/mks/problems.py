"""What is wrong in a text: problems with their places, shown with a caret."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import NoReturn

from linkwright.errors import MksError

MOST = 50  # problems reported of one file
_LONGEST = 400  # letters of a message, which may name something long
_TRAIL = 250  # letters of the repetitions around a problem
_WIDTH = 110  # columns of a line that are shown


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong in a text: where (counted from 1), what, and the line with a caret beneath it."""

    line: int
    column: int
    message: str
    excerpt: str = ""


@dataclass(slots=True)
class Node:
    """A piece of text from `start` to before `end`."""

    start: int
    end: int


class Fault(Exception):
    """Ends the reading of one statement; without a message, the cause has been reported elsewhere."""

    def __init__(self, at: Node | None = None, message: str = "") -> None:
        super().__init__(message)
        self.at, self.message = at, message


class Enough(Exception):
    """So many problems that more would not help."""


class Problems:
    """The problems of one text."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text.replace("\r\n", "\n").replace("\r", "\n")
        self.file = file
        self._faults: dict[tuple[int, int, str], None] = {}
        self._lines: list[int] | None = None
        self._repeated: set[tuple[int, int]] = set()
        self.trail = ""  # the repetition in which the statement that is being read was made

    def __bool__(self) -> bool:
        return bool(self._faults)

    def copy(self, file: str) -> Problems:
        """The same problems so far, of a text under another name."""
        problems = Problems(self.text, file)
        problems._faults.update(self._faults)
        problems._repeated.update(self._repeated)
        return problems

    def add(self, at: Node, message: str) -> None:
        """A problem; of repetitions the first one alone, with their number."""
        trail = getattr(at, "trail", "") or self.trail
        if trail:
            if (at.start, at.end) in self._repeated:
                return
            self._repeated.add((at.start, at.end))
            trail = trail if len(trail) <= _TRAIL else f"... {trail[-_TRAIL:].partition(', ')[2]}"
            message = f"{message[:_LONGEST]} (in {trail})"
        elif len(message) > _LONGEST:
            message = message[:_LONGEST] + "..."
        self._faults[at.start, at.end, message] = None
        if len(self._faults) >= MOST:
            raise Enough

    def add_fault(self, fault: Fault) -> None:
        """A fault, unless its cause has been reported."""
        if fault.at is not None:
            self.add(fault.at, fault.message)

    def fail(self) -> NoReturn:
        """Raise all problems, in the order of the text."""
        raise MksError([self._shown(*key) for key in sorted(self._faults)], file=self.file) from None

    def line_of(self, offset: int) -> int:
        """The number of a line, from 1."""
        if self._lines is None:
            self._lines = [0, *(k + 1 for k, c in enumerate(self.text) if c == "\n")]
        return bisect_right(self._lines, offset)

    def _shown(self, start: int, end: int, message: str) -> Problem:
        start = min(start, len(self.text))
        line = self.line_of(start)
        assert self._lines is not None
        first = self._lines[line - 1]
        last = self.text.find("\n", first)
        last = len(self.text) if last < 0 else last
        column = start - first
        # Of a long line the part about the place is shown.
        low = max(0, column - _WIDTH // 2) if last - first > _WIDTH else 0
        source = self.text[first + low : min(last, first + low + _WIDTH)].rstrip()
        source = "".join(c if c.isprintable() else " " for c in source)
        if not source:
            return Problem(line, column + 1, message)
        wide = max(1, min(end, last, first + low + _WIDTH) - start)
        excerpt = f"    {source}\n    {' ' * (column - low)}^{'~' * (wide - 1)}"
        return Problem(line, column + 1, message, excerpt)
