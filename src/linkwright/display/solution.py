"""A motion in a notebook: how it ended, its animation, its curves, and tables of what is in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.display.charts import Chart, legend, svg, together
from linkwright.display.markup import ROWS, beside, folded, heading, line, shown, table
from linkwright.errors import LinkwrightError
from linkwright.results.series import Series
from linkwright.results.solution import QUANTITIES, Solution
from linkwright.views import count

#: Time points of a motion that are drawn and animated without being asked, and bodies up to which it is at all.
POINTS, BODIES = 1500, 120
#: Numbers of an array up to which its least and greatest are looked for.
LOOKED = 4_000_000
_COLUMNS = 3


def solution(sol: Solution) -> str:
    """The output for a motion."""
    d, points = sol.description, len(sol)
    span = f", t = {sol.time[0]:g} … {sol.time[-1]:g} s" if points else ""
    title = heading(d.name, f"{count(d.nb, 'body', 'bodies')}, {count(points, 'time point')}{span}")
    told = line(sol.status, bad=not sol.status)
    drawn = []
    if points and 0 < d.nb <= BODIES:
        some = thinned(sol)
        note = f"{len(some):,} of {points:,} time points are drawn: sol.animate() and sol.plot() have them all"
        drawn = [_animation(some), _charts(some), line(note, soft=True) if len(some) < points else ""]
    elif points and d.nb:
        drawn = [
            line("It is large: ask for sol.animate(), sol.plot([names]) or sol.data to see more of it.", soft=True)
        ]
    return shown(title, told, *drawn, folded("what is in it", _contents(sol)), *_lists(sol))


def thinned(sol: Solution) -> Solution:
    """A long motion at some of its time points, without its motion at the others being computed."""
    if len(sol) <= POINTS:
        return sol
    rows = np.unique(np.linspace(0, len(sol) - 1, POINTS).round().astype(np.intp))
    series = {name: Series(one.values[rows], one.unit) for name, one in sol.series.items()}
    if sol.states is not None:
        q, v, a = (x[rows] for x in (sol.states.q, sol.states.v, sol.states.a))
        made = Solution.of_states(
            sol.description, sol.time[rows], q, v, a, status=sol.status, counters=sol.counters, mechanism=sol.mechanism
        )
        return made.with_series(series)
    arrays = {name: array[rows] for name, array in sol.arrays.items()}
    return Solution(
        sol.description, sol.time[rows], arrays, sol.iterations[rows], sol.status, sol.counters, series=series
    )


def _animation(sol: Solution) -> str:
    try:
        made: Any = sol.animate()
    except LinkwrightError as error:
        return line(f"no animation: {error}", soft=True)
    shown_: str = made._repr_html_()
    return shown_


def _charts(sol: Solution) -> str:
    """Positions and velocities of what the figure of `sol.plot` has in its first columns."""
    from linkwright.results.plots import curves

    if len(sol) < 2:
        return ""
    names, rows, left_out = curves(sol, None, ("position", "velocity"))
    found: list[str] = []
    labels: list[Sequence[str]] = []
    for k, name in enumerate(names[:_COLUMNS]):
        column = [one for row in rows if (one := row[k]) is not None]
        found.append("".join(svg(Chart(name, sol.time, one.y, one.labels, one.axis)) for one in column))
        labels += [one.labels for one in column if len(one.labels) > 1]
    more = len(names) + len(left_out) - _COLUMNS
    rest = line(f"over time in s; {more} more move: sol.plot([names])", soft=True) if more > 0 else ""
    return beside(*found) + legend(together(labels)) + rest


def _contents(sol: Solution) -> str:
    d, t, m = sol.description, len(sol), sol.mechanism
    rows: list[tuple[object, ...]] = [
        ("sol.time", f"({t},)", "s"),
        ("sol.q", f"({t}, {m.nq})", "coordinates of the spanning tree"),
        ("sol.v, sol.a", f"({t}, {m.nv})", "their rates and accelerations"),
        *(
            (f"sol.{name}(body)", f"({t}, {size})", f"{text}, {unit}")
            for name, (size, unit, text) in QUANTITIES.items()
        ),
    ]
    names = ", ".join(d.body_names[:ROWS]) + (" …" if d.nb > ROWS else "")
    return table(("ask", "shape", "is"), rows) + line(f"bodies: {names}") + line(f"work: {sol.counters}", soft=True)


def _lists(sol: Solution) -> list[str]:
    head = ("series", "unit", "least", "greatest")
    series = ((name, x.unit, *_ends(x.values)) for name, x in sol.series.items())
    events = ((e.name, e.time) for e in sol.events)
    return [
        folded(count(len(sol.series), "series", "series"), table(head, series, len(sol.series)) if sol.series else ""),
        folded(
            count(len(sol.events), "event"),
            table(("event", "time (s)"), events, len(sol.events)) if sol.events else "",
        ),
    ]


def _ends(values: NDArray[np.float64]) -> tuple[object, object]:
    """The least and the greatest finite value."""
    if values.size > LOOKED:
        return "", ""
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else ("", "")
