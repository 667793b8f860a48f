"""Outputs of a study: expressions of motion and parameters, read by the grammar of models, over all cases at once.

`max(block.x) - min(block.x)` is a number for every case; `block.x - crank_length`, without a reduction over time, is a
series for every case. Nothing is evaluated as Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from linkwright.base.types import Floats
from linkwright.errors import LinkwrightError, ModelError, NameNotFound
from linkwright.mechanism.description import Description
from linkwright.mechanism.expression import FUNCTIONS
from linkwright.mechanism.quantities import COORDINATES, rate_names
from linkwright.results.places import find, fitting
from linkwright.sweeps.motions import Motions

#: A value over all cases: one number, (n,) for every case, or (T, n) at every time.
Value = Callable[[Motions], Any]

#: Words after a place: which quantity of it.
_PLACES = {
    "": "position",
    "v": "velocity",
    "a": "acceleration",
    "w": "angular_velocity",
    "alpha": "angular_acceleration",
}
_AXES = "xyz"
DISTANCES = ("distance", "distance_rate")
_FORCES = ("force", "torque", "fx", "fy", "fz", "mx", "my", "mz")  # what series of forces are called


def _total(x: Floats) -> Floats:
    """The sum over time, one after the other: NumPy's own order of sums depends on how many cases there are."""
    return np.asarray(np.add.accumulate(x, axis=0)[-1]) if len(x) else np.zeros(x.shape[1:])


def _integral(x: Floats, t: Floats) -> Floats:
    return _total(0.5 * (x[1:] + x[:-1]) * np.diff(t)[:, None])


#: Reductions over time: (T, n) and the times to (n,).
REDUCTIONS: dict[str, Callable[[Floats, Floats], Any]] = {
    "max": lambda x, t: x.max(axis=0),
    "min": lambda x, t: x.min(axis=0),
    "mean": lambda x, t: _total(x) / len(x),
    "rms": lambda x, t: np.sqrt(_total(x * x) / len(x)),
    "final": lambda x, t: x[-1],
    "initial": lambda x, t: x[0],
    "range": lambda x, t: x.max(axis=0) - x.min(axis=0),
    "argmax": lambda x, t: t[np.argmax(x, axis=0)],
    "argmin": lambda x, t: t[np.argmin(x, axis=0)],
    "integral": _integral,
}


@dataclass(frozen=True, eq=False)
class Output:
    """One output: its name, how it is computed, whether it is a series, and what it needs."""

    name: str
    value: Value
    series: bool
    names: frozenset[str]  # parameters that it uses
    forces: tuple[str, ...]  # series of forces that it uses

    def __call__(self, motions: Motions) -> Floats:
        """(n,), or (n, T): NaN for numbers of cases that failed, and where a series did not come."""
        with np.errstate(all="ignore"):
            found = np.asarray(self.value(motions), dtype=np.float64)
        if self.series:
            return np.ascontiguousarray(motions.spread(found).T)
        numbers = np.array(np.broadcast_to(found, (len(motions.cases),)))
        numbers[[bool(reason) for reason in motions.reasons]] = np.nan
        return numbers


def compiled(name: str, text: str, description: Description, *, forces: bool) -> Output:
    """The output of a text; `forces` says whether the analysis knows forces. Errors name the output."""
    try:
        maker = _Maker(description, forces)
        value, series = maker.made(_parsed(text))
    except LinkwrightError as error:
        told = f"the output {name!r}: {error}"
        raise (ModelError(told, element=name)) from error
    return Output(name, value, series, frozenset(maker.names), tuple(dict.fromkeys(maker.forces)))


def _parsed(text: str) -> Any:
    from lark.exceptions import UnexpectedInput

    from linkwright.formats.mks.parser import check_nesting, parsed_by_grammar
    from linkwright.formats.mks.problems import Fault

    if len(text) > 20_000 or ";" in text:
        raise ModelError("an expression is one line of arithmetic, without ';'")
    head = "PARAMETER output = "
    line = f"{head}{text};"
    try:
        check_nesting(line, 0, len(line))
        return parsed_by_grammar(line, 0, len(line)).items[0].value
    except Fault as fault:
        raise ModelError(f"{text!r} cannot be read: {fault.message}") from None
    except UnexpectedInput as error:
        at = max(0, (getattr(error, "pos_in_stream", None) or 0) - len(head))
        where = f"at {text[at : at + 20]!r}" if at < len(text) else "at its end"
        raise ModelError(f"{text!r} is no expression, {where}; write one such as max(block.x) - min(block.x)") from None


class _Maker:
    """Makes values of the nodes of an expression."""

    def __init__(self, description: Description, forces: bool) -> None:
        self.d, self.known_forces = description, forces
        self.names: set[str] = set()
        self.forces: list[str] = []

    def made(self, node: Any) -> tuple[Value, bool]:
        """A value, and whether it is a series."""
        from linkwright.formats.mks.syntax import Applied, Dotted, Num, Word

        if isinstance(node, Num):
            return self._number(node), False
        if isinstance(node, Word):
            return self._name(node)
        if isinstance(node, Dotted):
            return self._quantity(node.name.text, node.part.text), True
        if isinstance(node, Applied):
            return self._applied(node)
        raise ModelError("an output is made of numbers, names and functions, without lists")

    def _number(self, node: Any) -> Value:
        from linkwright.formats.mks.values import UNITS

        number = float(node.value)
        if node.unit is not None:
            unit = node.unit.text.lower()
            if unit not in UNITS:
                raise NameNotFound("unit", node.unit.text, list(UNITS))
            number *= UNITS[unit]
        return lambda m: number

    def _name(self, node: Any) -> tuple[Value, bool]:
        from linkwright.formats.mks.values import CONSTANTS

        word = node.text
        if not node.quoted and word.lower() == "time":
            return (lambda m: m.time[:, None]), True
        if not node.quoted and word.lower() in CONSTANTS:
            number = CONSTANTS[word.lower()]
            return (lambda m: number), False
        fits = [p for p in self.d.parameters if p == word] or [
            p for p in self.d.parameters if p.casefold() == word.casefold()
        ]
        if len(fits) != 1:
            places = [*self.d.body_names[:200], *self.d.joint_names[:200]]
            if word in places:
                raise ModelError(f"{word!r} alone is no number; say what of it, as in {word}.{self._example(word)}")
            raise NameNotFound("parameter", word, [*self.d.parameters, "TIME"])
        name = fits[0]
        self.names.add(name)
        return (lambda m: m.cases.parameters[name]), False

    def _example(self, name: str) -> str:
        j = self.d.joint_names.find(name)
        if j is None:
            return "x"
        kind = self.d.kind_of(j).name
        return next(iter((*COORDINATES.get(kind, ()), *rate_names(kind))), "fx")

    # -- functions ------------------------------------------------------------------------------------------
    def _applied(self, node: Any) -> tuple[Value, bool]:
        from linkwright.formats.mks.values import CALLS

        word = node.function.text if node.operation else node.function.text.lower()
        if not node.operation and word in DISTANCES:
            return self._distance(word, node.arguments), True
        parts = [self.made(argument) for argument in node.arguments]
        values = [value for value, _ in parts]
        if not node.operation and word in REDUCTIONS and len(values) == 1:
            over_time, (value,) = REDUCTIONS[word], values
            return (lambda m: over_time(m.spread(value(m)), m.time)), False
        if not node.operation and word not in CALLS:
            raise NameNotFound("function", node.function.text, list(dict.fromkeys([*CALLS, *REDUCTIONS, *DISTANCES])))
        count, function = FUNCTIONS[word if node.operation else CALLS[word]]
        any_series = any(series for _, series in parts)
        if not node.operation and word in ("min", "max") and len(values) > 2:  # of two or more, as in models
            return (lambda m: reduce(function, (value(m) for value in values))), any_series
        if len(values) != count:
            over = f", or one to take it over time: {word}(block.x)" if word in REDUCTIONS else ""
            raise ModelError(f"{word} takes {count} arguments{over}; {len(values)} are given")
        return (lambda m: function(*(value(m) for value in values))), any_series

    def _distance(self, word: str, arguments: Sequence[Any]) -> Value:
        from linkwright.formats.mks.syntax import Word

        if len(arguments) != 2 or not all(isinstance(x, Word) for x in arguments):
            raise ModelError(f"{word} is between two bodies or triads, as in {word}(a, b)")
        first, second = (x.text for x in arguments)
        for name in (first, second):
            find(self.d, name)
        return lambda m: m.distance(first, second, rate=word == "distance_rate")

    # -- what moves -----------------------------------------------------------------------------------------
    def _quantity(self, name: str, part: str) -> Value:
        word = part.lower()
        kind, axis = word[:-1], _AXES.find(word[-1:])
        place, joint = self._place(name), self._joint(name)
        if place and axis >= 0 and kind in _PLACES:
            return lambda m: m.place(name, _PLACES[kind])[axis]
        if joint is not None:
            which = self._coordinate(joint, word)
            if which is not None:
                what, index = which
                return lambda m: m.joint(joint)[what][index]
        force = f"{name}.{part}"
        if self.known_forces and part in _FORCES and name in self._acting():
            self.forces.append(force)
            return lambda m: m.series[force]
        raise self._unknown(name, part, place, joint)

    def _unknown(self, name: str, part: str, place: bool, joint: int | None) -> LinkwrightError:
        d = self.d
        if joint is not None:
            names = [*self._words(joint), *(_FORCES[2:] if self.known_forces else ())]
            kind = d.kind_of(joint).name
            return ModelError(f"joint {name!r} is {kind} and has no {part!r}; it has {', '.join(names)}")
        if place:
            words = [f"{kind}{axis}" for kind in _PLACES for axis in _AXES]
            return ModelError(f"{name!r} has no {part!r}; it has {', '.join(words)}")
        if name in self._acting() and self.known_forces:
            return ModelError(f"{name!r} acts, and has no {part!r}; it has {' or '.join(_FORCES[:2])}")
        if name in self._acting():
            text = f"{name}.{part} is a force, which this analysis does not compute"
            return ModelError(f"{text}; take analysis='dynamic' or 'inverse dynamic'")
        known = [*d.body_names[:500], *d.joint_names[:500], *d.frames.names[:500], *self._acting()]
        return NameNotFound("body, triad or joint", name, list(dict.fromkeys(known)))

    def _acting(self) -> list[str]:
        """What forces may be named after."""
        d = self.d
        named = [x.name for group in (d.drivers, d.elements, d.ties, d.mimics) for x in group if x.name]
        return [*named, *d.joint_names[:2000]]

    def _place(self, name: str) -> bool:
        try:
            find(self.d, name)
        except NameNotFound:
            return False
        return True

    def _joint(self, name: str) -> int | None:
        names = self.d.joint_names
        fits = [name] if names.find(name) is not None else fitting(names, name)
        return names.find(fits[0]) if len(fits) == 1 else None

    def _words(self, j: int) -> list[str]:
        kind = self.d.kind_of(j)
        names = COORDINATES.get(kind.name, ())
        return [*names, *rate_names(kind.name), *self._accelerations(j)]

    def _accelerations(self, j: int) -> list[str]:
        """How the accelerations of a joint are called."""
        kind = self.d.kind_of(j)
        if kind.nv == 1:
            return ["acceleration"]
        return [f"{name}_acceleration" for name in COORDINATES.get(kind.name, rate_names(kind.name))]

    def _coordinate(self, j: int, word: str) -> tuple[int, int] | None:
        """Which of coordinates (0), rates (1) and accelerations (2) a word means, and its number."""
        from linkwright.formats.mks.links import coordinate_index
        from linkwright.formats.mks.loads import rate_index

        kind = self.d.kind_of(j)
        accelerations = self._accelerations(j)
        found = coordinate_index(kind.name, word), rate_index(kind.name, word), None
        for what, index in enumerate(found):
            if index is not None:
                return what, index
        if word in accelerations:
            return 2, accelerations.index(word)
        if word[:1] == "a" and word[1:].isdecimal() and len(word) == 2 and int(word[1:]) < kind.nv:
            return 2, int(word[1:])
        return None
