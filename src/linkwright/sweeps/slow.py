"""Which cases of a study take long, reported while they do: from a thread of its own, since nothing else may happen."""

from __future__ import annotations

import threading
from time import monotonic
from types import TracebackType
from warnings import warn

from linkwright.errors import SlowCaseWarning

SLOW = 60.0  # seconds after which cases are called slow, if they also take …
_SLOWER = 10.0  # … so many times as long as the slowest before them
_AGAIN = 4.0  # times as long, until they are called slow again


class SlowCases:
    """Watches the cases that are computed: at most `busy` parts at a time, in the order in which they were given."""

    def __init__(self, limit: float | None) -> None:
        self.busy = 1
        self._limit = limit
        self._begun: dict[tuple[int, int], float] = {}
        self._next: dict[tuple[int, int], float] = {}
        self._slowest = 0.0
        self._ended: threading.Event | None = None

    def begin(self, start: int, stop: int) -> None:
        """The cases start … stop are given to a worker."""
        self._begun[start, stop] = monotonic()

    def end(self, start: int, stop: int) -> None:
        """They are finished, or given up."""
        seconds = monotonic() - self._begun.pop((start, stop), monotonic())
        self._slowest = max(self._slowest, seconds)

    def __enter__(self) -> SlowCases:
        self._ended = threading.Event()
        threading.Thread(target=self._watch, args=(self._ended,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._ended is not None:
            self._ended.set()

    def _watch(self, ended: threading.Event) -> None:
        while not ended.wait(min(5.0, SLOW / 4.0)):
            self._look()

    def _look(self) -> None:
        now = monotonic()
        for part, begun in list(self._begun.items())[: self.busy]:
            seconds = now - begun
            if seconds > max(SLOW, _SLOWER * self._slowest, self._next.get(part, 0.0)):
                self._next[part] = _AGAIN * seconds
                warn(self._sentence(*part, seconds), SlowCaseWarning, stacklevel=1)

    def _sentence(self, start: int, stop: int, seconds: float) -> str:
        cases = f"case {start} is" if stop - start == 1 else f"cases {start} to {stop - 1} are"
        advice = "a case that never ends becomes a failed row with time_limit=..."
        if self._limit is not None:
            advice = f"a case has {self._limit:g} s of CPU time"
        return f"{cases} not finished after {seconds:.0f} s; {advice}"
