"""The plain way through a study's cases: one after the other by `lw.analyse`, outputs from each `Solution`.

Slow, with a reading of expressions of its own: the measure of the engine that does many cases at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from lark.exceptions import UnexpectedInput
from numpy.typing import NDArray

from linkwright.errors import LinkwrightError, ModelError, NameNotFound
from linkwright.formats.mks.parser import check_nesting, parsed_by_grammar
from linkwright.formats.mks.syntax import Applied, Dotted, Fault, Node, Num, Word
from linkwright.formats.mks.values import CALLS, CONSTANTS
from linkwright.model.expression import FUNCTIONS
from linkwright.model.units import unit
from linkwright.results.solution import Solution
from linkwright.sweeps.task import Batch, Task, sentence

Floats = NDArray[np.float64]
_KINDS = {"": "position", "v": "velocity", "a": "acceleration", "w": "angular_velocity"}
_JOINT = {"angle": "joint", "shift": "joint", "rate": "joint_rate", "acceleration": "joint_acceleration"}
_REDUCTIONS: dict[str, Callable[[Floats, Floats], Any]] = {
    "max": lambda x, t: x.max(),
    "min": lambda x, t: x.min(),
    "mean": lambda x, t: x.mean(),
    "rms": lambda x, t: np.sqrt(np.mean(x * x)),
    "final": lambda x, t: x[-1],
    "initial": lambda x, t: x[0],
    "range": lambda x, t: np.ptp(x),
    "argmax": lambda x, t: t[x.argmax()],
    "argmin": lambda x, t: t[x.argmin()],
    "integral": lambda x, t: np.sum(0.5 * (x[1:] + x[:-1]) * np.diff(t)),
}


class Engine:
    """Runs cases of a task; the same numbers whichever cases come together."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.nodes = [(name, _parsed(name, text)) for name, text in task.outputs]

    def run(self, values: Floats) -> Batch:
        """The cases of these rows."""
        rows = [self._case(row) for row in np.atleast_2d(values)]
        arrays = {}
        for name in self.task.all_outputs:
            found = [row.get(name) for row, _ in rows]
            wide = any(np.ndim(x) for x in found if x is not None)
            shape = (len(self.task.times),) if wide else ()
            arrays[name] = np.array([_padded(x, shape) for x in found]).reshape(len(rows), *shape)
        return Batch(arrays, [reason for _, reason in rows])

    def _case(self, row: Floats) -> tuple[dict[str, Any], str]:
        try:
            solution = self.task.solution(row)
        except LinkwrightError as error:
            return {}, sentence(error)
        good = bool(solution.status)
        reason = "" if good else solution.status.message or solution.status.reason
        known = {**solution.description.parameters, **dict(zip(self.task.names, row.tolist(), strict=True))}
        found: dict[str, Any] = {}
        for name, node in self.nodes:
            x = _value(node, solution, known)
            if good or np.ndim(x):
                found[name] = x
        for name, function in self.task.functions.items() if good else ():
            try:
                found[name] = float(function(solution))
            except Exception as error:  # whatever a user's function raises is this case's failure
                reason = f"the function {name!r} raised {type(error).__name__}: {error}"
        return found, reason


def _padded(x: Any, shape: tuple[int, ...]) -> Floats:
    full = np.full(shape, np.nan)
    if x is None:
        return full
    if not shape or not np.ndim(x):
        full[...] = x
        return full
    full[: len(x)] = x
    return full


def _parsed(name: str, text: str) -> Node:
    line = f"PARAMETER x = {text};"
    try:
        check_nesting(line, 0, len(line))
        node: Node = parsed_by_grammar(line, 0, len(line)).items[0].value
    except (Fault, UnexpectedInput) as error:
        why = error.message if isinstance(error, Fault) else "this is no expression"
        raise ModelError(f"the output {name!r}, {text!r}, cannot be read: {why}") from error
    return node


def _value(node: Node, s: Solution, known: dict[str, float]) -> Any:
    if isinstance(node, Num):
        return unit(node.unit.text).si(node.value) if node.unit is not None else node.value
    if isinstance(node, Word):
        if node.text.lower() == "time":
            return s.time
        if node.text.lower() in CONSTANTS:
            return CONSTANTS[node.text.lower()]
        if node.text not in known:
            raise NameNotFound("parameter", node.text, list(known))
        return known[node.text]
    if isinstance(node, Dotted):
        return _quantity(node.name.text, node.part.text, s)
    if isinstance(node, Applied):
        word = node.function.text
        if word == "distance":
            a, b = (x.text for x in node.arguments if isinstance(x, Word))
            return np.linalg.norm(s.position(a) - s.position(b), axis=1)
        values = [_value(a, s, known) for a in node.arguments]
        if len(values) == 1 and word in _REDUCTIONS:
            x = np.broadcast_to(np.asarray(values[0], float), s.time.shape)
            return _REDUCTIONS[word](x, s.time) if len(x) else np.nan
        return FUNCTIONS[word if node.operation else CALLS[word]][1](*values)
    raise ModelError("an output is made of numbers, names and functions")


def _quantity(name: str, part: str, s: Solution) -> Any:
    if f"{name}.{part}" in s.series:
        return s.series[f"{name}.{part}"].values
    if part in _JOINT:
        return getattr(s, _JOINT[part])(name)[:, 0]
    kind, axis = part[:-1], "xyz".find(part[-1:])
    if kind not in _KINDS or axis < 0:
        raise NameNotFound("quantity", part, ["x", "vx", "ax", "wx", "angle", "rate"])
    return getattr(s, _KINDS[kind])(name)[:, axis]
