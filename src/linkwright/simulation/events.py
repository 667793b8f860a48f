"""Events: zero crossings of functions of the state, found between the steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Event:
    """A zero crossing of function(t, q, v): upward with direction > 0, downward with < 0, else both.

    The function is in NumPy syntax and is compiled; one that cannot be recorded is called from Python at every step.
    A terminal event ends the run where it happens. `sol.events` lists what was met.
    """

    function: Callable[[Any, Any, Any], Any]
    terminal: bool = False
    direction: int = 0
    name: str = ""


class Watch:
    """An event that is looked for."""
