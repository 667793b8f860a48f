"""A solution as a table: an xarray Dataset with labels and units, or a CSV file."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.base.files import atomic_text
from linkwright.model.bodies import QUANTITIES
from linkwright.results.joints import one_coordinate
from linkwright.results.solution import Solution

if TYPE_CHECKING:
    import xarray

AXES = ("x", "y", "z")
PARAMETERS = ("e0", "e1", "e2", "e3")
#: What a simulation keeps of the spanning tree at every time: its dimension, and what it is.
STATES = {
    "q": ("coordinate", "coordinates of the spanning tree"),
    "v": ("rate", "rates of the spanning tree"),
    "a": ("rate", "accelerations of the spanning tree"),
}
#: The start of the column names of each quantity.
_HEADS = {
    "position": "",
    "orientation": "",
    "velocity": "v",
    "angular_velocity": "w",
    "acceleration": "a",
    "angular_acceleration": "alpha_",
}


def dataset(solution: Solution) -> xarray.Dataset:
    """Every quantity with its dimensions, labels and units."""
    import xarray

    d = solution.description
    variables: dict[str, Any] = {}
    for name, (size, unit, text) in QUANTITIES.items():
        dimensions = ("time", "body", "axis" if size == 3 else "parameter")
        variables[name] = (dimensions, solution.arrays[name], {"units": unit, "long_name": text})
    variables["iterations"] = ("time", solution.iterations, {"units": "1", "long_name": "Newton iterations"})
    if solution.series:
        names, units = list(solution.series), [x.unit for x in solution.series.values()]
        table = np.stack([x.values for x in solution.series.values()], axis=1)
        text = f"forces and torques, in the units {', '.join(dict.fromkeys(units))}"
        variables["series"] = (("time", "name"), table, {"long_name": text})
        variables["unit"] = ("name", np.array(units, dtype=object), {"long_name": "unit of a series"})
    if solution.states is not None:
        for name, (dimension, text) in STATES.items():
            variables[name] = (("time", dimension), getattr(solution.states, name), {"long_name": text})
    labels = {
        "time": ("time", solution.time, {"units": "s", "long_name": "time"}),
        "body": ("body", np.array(list(d.body_names), dtype=object), {"long_name": "body"}),
        "axis": ("axis", np.array(AXES, dtype=object), {"long_name": "axis of ground"}),
        "parameter": ("parameter", np.array(PARAMETERS, dtype=object), {"long_name": "Euler parameter"}),
    }
    if solution.series:
        labels["name"] = ("name", np.array(names, dtype=object), {"long_name": "name of a series"})
    return xarray.Dataset(variables, labels, {"title": d.name, "outcome": str(solution.status)})


def write_csv(solution: Solution, path: str | os.PathLike[str], names: str | Sequence[str] | None = None) -> None:
    """One row a time point; numbers are written so that they read back to the same bits."""
    heads, columns = ["time [s]"], [solution.time[:, None]]
    everything = names is None
    if names is None:
        names = solution.description.body_names
    for name in [names] if isinstance(names, str) else names:
        for quantity, (size, unit, _) in QUANTITIES.items():
            mark = "" if unit == "1" else f" [{unit}]"
            heads += [f"{name}.{_HEADS[quantity]}{x}{mark}" for x in (AXES if size == 3 else PARAMETERS)]
            columns.append(getattr(solution, quantity)(name))
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
    for trace in solution.description.traces:
        for quantity in ("position", "velocity", "acceleration"):
            values = getattr(solution, quantity)(trace.place)
            for k, x in enumerate(AXES):
                yield f"{trace.name}.{_HEADS[quantity]}{x} [{QUANTITIES[quantity][1]}]", values[:, k : k + 1]
    yield from ((f"{name} [{x.unit}]", x.values[:, None]) for name, x in solution.series.items())
    for name, turns, values in one_coordinate(solution):
        word, unit = ("angle", "rad") if turns else ("shift", "m")
        for k, (head, end) in enumerate(((word, ""), ("rate", "/s"), ("acceleration", "/s^2"))):
            yield f"{name}.{head} [{unit}{end}]", values[k][:, None]
