"""What a solution shows: its table as CSV, its page with the animation, and its output in notebooks."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np

from linkwright.base.arguments import counted
from linkwright.base.files import atomic_text
from linkwright.base.html import ROWS, beside, folded, heading, line, shown, span, table
from linkwright.errors import LinkwrightError
from linkwright.model.body_motion import QUANTITIES
from linkwright.model.curve_elements import parts_of_curves
from linkwright.results.labelled_arrays import AXES, PARAMETERS
from linkwright.results.motion_quantities import one_coordinate
from linkwright.results.solution import Solution
from linkwright.results.solution_plots import curves
from linkwright.results.status import Series, loads
from linkwright.viewer.notebook import Chart, legend, svg, together
from linkwright.viewer.page import Animation, spread
from linkwright.viewer.page import animate as animate_scene
from linkwright.viewer.scene import scene

#: The start of the column names of each quantity.
_HEADS = {
    "position": "",
    "orientation": "",
    "velocity": "v",
    "angular_velocity": "w",
    "acceleration": "a",
    "angular_acceleration": "alpha_",
}


def write_csv(solution: Solution, path: str | os.PathLike[str], names: str | Sequence[str] | None = None) -> None:
    """One row per time point, in the model's units; numbers are written so that they read back to the same bits."""
    units = solution.description.units
    when = units.shown("s")
    heads, columns = [f"time [{when.text}]"], [when.of(solution.time[:, None])]
    everything = names is None
    if names is None:
        names = solution.description.body_names
    for name in [names] if isinstance(names, str) else names:
        for quantity, (size, unit, _) in QUANTITIES.items():
            shown = units.shown(unit)
            mark = "" if unit == "1" else f" [{shown.text}]"
            heads += [f"{name}.{_HEADS[quantity]}{x}{mark}" for x in (AXES if size == 3 else PARAMETERS)]
            columns.append(shown.of(getattr(solution, quantity)(name)))
    if everything:
        taken = set(heads)
        for head, column in _more(solution):
            # Two things may have one name; a head stands for one column only.
            marked = next(x for x in chain([head], (f"{head} ({k})" for k in count(2))) if x not in taken)
            taken.add(marked)
            heads.append(marked)
            columns.append(column)
    with atomic_text(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(heads)
        writer.writerows(np.concatenate(columns, axis=1).tolist())


def _more(solution: Solution) -> Iterator[tuple[str, Any]]:
    """Heads and columns (T, 1) of traced points and of joints with one coordinate, in the model's order."""
    units = solution.description.units
    for trace in solution.description.traces:
        for quantity in ("position", "velocity", "acceleration"):
            shown = units.shown(QUANTITIES[quantity][1])
            values = shown.of(getattr(solution, quantity)(trace.place))
            for k, x in enumerate(AXES):
                yield f"{trace.name}.{_HEADS[quantity]}{x} [{shown.text}]", values[:, k : k + 1]
    for name, series in solution.series.items():
        shown = units.shown(series.unit)
        yield f"{name} [{shown.text}]" if shown.text else name, shown.of(series.values[:, None])
    for name, turns, values in one_coordinate(solution):
        word, unit = ("angle", "rad") if turns else ("shift", "m")
        for k, (head, end) in enumerate(((word, ""), ("rate", "/s"), ("acceleration", "/s^2"))):
            shown = units.shown(unit + end)
            yield f"{name}.{head} [{shown.text}]", shown.of(values[k][:, None])


#: Time points of a motion that are drawn and animated without being asked, and bodies up to which it is at all.
POINTS, BODIES = 1500, 120
_COLUMNS = 3


def animate(
    sol: Solution, path: str | os.PathLike[str] | None, title: str | None, height: int | None
) -> Path | Animation:
    """The motion as a page: a file, or without a path an animation that notebooks show."""
    massless = parts_of_curves(sol.description.point_constraints)
    shown_scene = scene(
        sol.description,
        sol.time,
        sol.arrays,
        joints=[joint for joint in one_coordinate(sol) if joint[0] not in massless],
        loads=loads(sol.series),
        title=title,
        notes=() if sol.status else (str(sol.status),),
    )
    return animate_scene(shown_scene, path, height)


def output(sol: Solution) -> str:
    """The output for a motion."""
    d, points = sol.description, len(sol)
    when = d.units.shown("s")
    first, last = when.of(sol.time[[0, -1]]) if points else (0.0, 0.0)
    interval = f", t = {first:g} … {last:g} {when.text}" if points else ""
    title = heading(d.name, f"{counted(d.nb, 'body', 'bodies')}, {counted(points, 'time point')}{interval}")
    status = line(sol.status, bad=not sol.status)
    drawn = []
    if points and 0 < d.nb <= BODIES:
        some = thinned(sol)
        note = f"{len(some):,} of {points:,} time points are drawn: sol.animate() and sol.plot() have them all"
        drawn = [_animation(some), _charts(some), line(note, soft=True) if len(some) < points else ""]
    elif points and d.nb:
        drawn = [
            line("It is large: ask for sol.animate(), sol.plot([names]) or sol.data to see more of it.", soft=True)
        ]
    return shown(title, status, *drawn, folded("what is in it", _contents(sol)), *_lists(sol))


def thinned(sol: Solution) -> Solution:
    """A long motion at some of its time points, without its motion at the others being computed."""
    if len(sol) <= POINTS:
        return sol
    rows = spread(len(sol), POINTS)
    series = {name: Series(one.values[rows], one.unit) for name, one in sol.series.items()}
    if sol.states is not None:
        q, v, a = (x[rows] for x in (sol.states.q, sol.states.v, sol.states.a))
        some = Solution.of_states(
            sol.description, sol.time[rows], q, v, a, status=sol.status, counters=sol.counters, mechanism=sol.mechanism
        )
        return some.with_series(series)
    arrays = {name: array[rows] for name, array in sol.arrays.items()}
    return Solution(
        sol.description, sol.time[rows], arrays, sol.iterations[rows], sol.status, sol.counters, series=series
    )


def _animation(sol: Solution) -> str:
    try:
        return sol.animate().html()
    except LinkwrightError as error:
        return line(f"no animation: {error}", soft=True)


def _charts(sol: Solution) -> str:
    """Positions and velocities of what the figure of `sol.plot` has in its first columns."""
    if len(sol) < 2:
        return ""
    names, rows, left_out = curves(sol, None, ("position", "velocity"))
    when = sol.description.units.shown("s")
    columns: list[str] = []
    labels: list[Sequence[str]] = []
    for k, name in enumerate(names[:_COLUMNS]):
        column = [one for row in rows if (one := row[k]) is not None]
        columns.append("".join(svg(Chart(name, when.of(sol.time), one.y, one.labels, one.axis)) for one in column))
        labels += [one.labels for one in column if len(one.labels) > 1]
    more = len(names) + len(left_out) - _COLUMNS
    note = line(f"over time in {when.text}; {more} more move: sol.plot([names])", soft=True) if more > 0 else ""
    return beside(*columns) + legend(together(labels)) + note


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
    head = ("series", "unit", "min", "max")
    units = sol.description.units
    when = units.shown("s")
    as_shown = ((name, units.shown(x.unit), x.values) for name, x in sol.series.items())
    series = ((name, shown.text, *span(shown.of(values))) for name, shown, values in as_shown)
    events = ((e.name, when.of(e.time)) for e in sol.events)
    series_table = table(head, series, len(sol.series)) if sol.series else ""
    event_table = table(("event", f"time ({when.text})"), events, len(sol.events)) if sol.events else ""
    return [
        folded(counted(len(sol.series), "series", "series"), series_table),
        folded(counted(len(sol.events), "event"), event_table),
    ]
