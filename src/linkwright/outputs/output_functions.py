"""The quantities that outputs name (`pen.x`, `hinge.rate`, `distance(a, b)`, forces), and reductions over time with
their derivatives.

A name is resolved once. Expressions have the quantity itself as a leaf: a `Measure` of the state, or a `Force`.

A reduction over an array works along its first axis, the times; cases come second.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.errors import LinkwrightError, ModelError, NameNotFound
from linkwright.model.body_motion import find, fitting
from linkwright.model.description import Description
from linkwright.model.expression import TIME, Expression, Name, as_expression, parts
from linkwright.model.quantities import POSITIONS, VELOCITIES, Quantity, joint_index, joint_words
from linkwright.spatial.algebra import Array

ACCELERATIONS = ("ax", "ay", "az", "alphax", "alphay", "alphaz")
#: The parts of a place, and the distances between two, by the order of the time derivative.
_PLACE_PARTS = (POSITIONS, VELOCITIES, ACCELERATIONS)
DISTANCES = ("distance", "distance_rate", "distance_acceleration")
#: The parts of forces: those of drivers and force elements first, then those of joints.
_FORCES = ("force", "torque", "fx", "fy", "fz", "mx", "my", "mz")
#: What `lw.machine_forces` has of the whole machine, and of a joint.
_OF_MACHINES = ("shaking_force", "shaking_moment", "ground_force", "ground_moment")
_BEARING = re.compile("bearing_[fm][xyz]")
_DISTANCE = re.compile(rf"({'|'.join(DISTANCES)})\((.+)\)")


@dataclass(frozen=True)
class Measure(Name):
    """A quantity of the state at a time; with `derivative`, the time derivative of that rate: an acceleration."""

    quantity: Quantity
    derivative: bool = False

    @property
    def order(self) -> int:
        """How often the quantity is differentiated by time: 0, 1 or 2."""
        return int(self.quantity.rate) + int(self.derivative)


@dataclass(frozen=True)
class Force(Name):
    """A series of forces by its name in `Solution.series`, as `motor.torque`."""


def named_quantity(d: Description, name: str) -> Measure | Force:
    """The quantity of a name as `pen.x` or `distance(a, b)`; an unknown name is an error with suggestions."""
    between = _DISTANCE.fullmatch(name.strip())
    if between and "," in between[2]:
        inside = between[2]
        at = inside.rfind(",", 0, inside.rfind("[") if inside.rstrip().endswith("]") else None)
        first, second = inside[: max(at, 0)], inside[at + 1 :]
        return distance(d, between[1], first.strip(" '\""), second.strip(" '\""))
    owner, dot, part = (x.strip() for x in name.rpartition("."))
    if not dot:
        some = [f"{place}.{axis}" for place in (*d.body_names[:100], *d.frames.names[:100]) for axis in POSITIONS]
        raise NameNotFound("parameter or quantity", name, [*d.parameters, *some])
    return quantity(d, owner, part)


def distance(d: Description, word: str, first: str, second: str) -> Measure:
    """The distance between the origins of two bodies or frames, or its time derivatives, by one of `DISTANCES`."""
    ends = _place_name(d, first), _place_name(d, second)
    return _measure(f"{word}({', '.join(ends)})", "distance", ends, DISTANCES.index(word), 0)


def quantity(d: Description, owner: str, part: str) -> Measure | Force:
    """A part of a body, a frame, a joint or a force, in this order; owners in another case where only one name fits."""
    word = part.lower()
    try:
        place = _place_name(d, owner)
    except NameNotFound:
        place = ""
    if place:
        for order, words in enumerate(_PLACE_PARTS):
            if word in words:
                return _measure(f"{place}.{word}", "place", (place,), order, words.index(word))
    joint = _joint(d, owner)
    if joint is not None:
        name = d.joint_names[joint]
        for order in range(3):
            index = joint_index(d.kind_of(joint).name, word, order)
            if index is not None:
                return _measure(f"{name}.{word}", "joint", (name,), order, index)
    if part in _FORCES and owner in _exerting(d):
        return Force(f"{owner}.{part}")
    raise _unknown(d, owner, part, place, joint)


def _measure(
    name: str, kind: Literal["joint", "place", "distance"], of: tuple[str, ...], order: int, index: int
) -> Measure:
    return Measure(name, Quantity(kind, of, index, order > 0), order > 1)


def _place_name(d: Description, name: str) -> str:
    """A body, a frame, ground or the place of a trace, by the name that the description has for it."""
    body, frame = find(d, name)
    return d.body_name(body) if frame is None else d.frames.names[frame]


def _joint(d: Description, name: str) -> int | None:
    names = d.joint_names
    fits = [name] if names.find(name) is not None else fitting(names, name)
    return names.find(fits[0]) if len(fits) == 1 else None


def example(d: Description, name: str) -> str:
    """A part of a body, frame or joint, to be shown in a message."""
    joint = d.joint_names.find(name)
    if joint is None:
        return "x"
    kind = d.kind_of(joint).name
    return next(iter((*joint_words(kind, 0), *joint_words(kind, 1))), "fx")


def _exerting(d: Description) -> list[str]:
    """The names of drivers, force elements, rods, gears and joints, which have forces."""
    groups = (d.drivers, d.elements, d.point_constraints, d.mimics)
    return [*(x.name for group in groups for x in group if x.name), *d.joint_names[:2000]]


def of_machine(word: str, joint: str = "") -> ModelError | None:
    """The error for a word, of a joint or alone, that no output is and `lw.machine_forces` has: it says how a study has
    it. None of others.
    """
    if not (_BEARING.fullmatch(word) if joint else word in _OF_MACHINES):
        return None
    load = "force" if word.startswith("bearing_f") else "moment"
    value = f"joints[{joint!r}].bearing_{load}" if joint else word
    text = f"{word!r} is no output; lw.machine_forces has it, for a study by a function of each case's solution: "
    return ModelError(f"{text}lw.sweep(..., outputs={{'peak': lambda sol: abs(lw.machine_forces(sol).{value}).max()}})")


def _unknown(d: Description, owner: str, part: str, place: str, joint: int | None) -> LinkwrightError:
    elsewhere = of_machine(part, d.joint_names[joint]) if joint is not None else None if place else of_machine(owner)
    if elsewhere is not None:
        return elsewhere
    if joint is not None:
        kind = d.kind_of(joint).name
        words = [*(word for order in range(3) for word in joint_words(kind, order)), *_FORCES[2:]]
        return ModelError(f"joint {owner!r} is {kind} and has no {part!r}; it has {', '.join(words)}")
    if place:
        words = [word for parts in _PLACE_PARTS for word in parts]
        return ModelError(f"{owner!r} has no {part!r}; it has {', '.join(words)}")
    exerting = _exerting(d)
    if owner in exerting:
        return ModelError(f"{owner!r} exerts a force and has no {part!r}; it has {' or '.join(_FORCES[:2])}")
    known = [*d.body_names[:500], *d.joint_names[:500], *d.frames.names[:500], *exerting]
    return NameNotFound("body, frame or joint", owner, list(dict.fromkeys(known)))


Slopes = Callable[[Floats, Floats], Floats]


def _total(x: Floats) -> Floats:
    """The sum over time, one after the other: NumPy's own order of sums depends on how many cases there are."""
    return np.asarray(np.add.accumulate(x, axis=0)[-1]) if len(x) else np.zeros(x.shape[1:])


def _integral(x: Floats, t: Floats) -> Floats:
    return _total(0.5 * (x[1:] + x[:-1]) * np.diff(t)[:, None])


def _at(place: Callable[[Floats], Any]) -> Slopes:
    """The slopes of the value at one time point: 1 there, and 0 elsewhere."""

    def slopes(y: Floats, t: Floats) -> Floats:
        return np.asarray(np.arange(len(y)) == place(y), dtype=np.float64)

    return slopes


_largest, _smallest = _at(np.argmax), _at(np.argmin)


def _root_slopes(y: Floats, t: Floats) -> Floats:
    return np.asarray(y / (len(y) * _root(y)))


def _trapezoid_weights(y: Floats, t: Floats) -> Floats:
    half = 0.5 * np.diff(t)
    return np.asarray(np.concatenate([half, [0.0]]) + np.concatenate([[0.0], half]))


def _root_curvature(y: Floats, dy: Floats) -> Floats:
    """∂²r = (∂yᵀ∂y/T − ∂r ∂rᵀ) / r of the root of the mean square r."""
    if not np.any(y):  # a corner, as that of an absolute value
        return np.full((dy.shape[1],) * 2, np.nan)
    n, root = len(y), _root(y)
    first = (y @ dy) / (n * root)
    return np.asarray((dy.T @ dy) / (n * root) - np.outer(first, first) / root)


def _root(y: Floats) -> float:
    return max(float(np.sqrt(np.mean(y**2))), 1e-300)


@dataclass(frozen=True)
class Reduction:
    """One number of all time points: its value, and its derivatives by the values at these.

    - `value`: of (T, n) and the times (T,), the numbers (n,) of n cases.
    - `slopes`: of one case y (T,) and the times, the derivatives (T,) by y; none for a time, which jumps from point to
      point.
    - `curvature`: of y (T,) and dy (T, k), the second derivatives (k, k) along y(p) besides those of y; none for a
      reduction that is linear in y.
    """

    value: Callable[[Floats, Floats], Any]
    slopes: Slopes | None = None
    curvature: Callable[[Floats, Floats], Floats] | None = None

    def by_values(self, y: Floats, t: Floats) -> Floats:
        """(T,): the derivatives by y."""
        assert self.slopes is not None, "outputs without derivatives are refused before"
        return self.slopes(y, t)


REDUCTIONS: dict[str, Reduction] = {
    "max": Reduction(lambda x, t: x.max(axis=0), _largest),
    "min": Reduction(lambda x, t: x.min(axis=0), _smallest),
    "mean": Reduction(lambda x, t: _total(x) / len(x), lambda y, t: np.full(len(y), 1.0 / len(y))),
    "rms": Reduction(lambda x, t: np.sqrt(_total(x * x) / len(x)), _root_slopes, _root_curvature),
    "final": Reduction(lambda x, t: x[-1], _at(lambda y: len(y) - 1)),
    "initial": Reduction(lambda x, t: x[0], _at(lambda y: 0)),
    "range": Reduction(lambda x, t: x.max(axis=0) - x.min(axis=0), lambda y, t: _largest(y, t) - _smallest(y, t)),
    "argmax": Reduction(lambda x, t: t[np.argmax(x, axis=0)]),
    "argmin": Reduction(lambda x, t: t[np.argmin(x, axis=0)]),
    "integral": Reduction(_integral, _trapezoid_weights),
}


@dataclass(frozen=True)
class Reduced(Expression):
    """One number of all time points: the reduction `kind` of an expression."""

    kind: str
    inner: Expression

    @property
    def key(self) -> str:
        """The name under which its value is found; no parameter has such a name."""
        return str(self)

    def evaluate(self, names: Mapping[str, Any]) -> Any:
        return names[self.key]

    def names(self) -> frozenset[str]:
        return frozenset((self.key,))

    def __str__(self) -> str:
        return f"{self.kind}({self.inner})"


def all_parts(expression: Expression) -> Iterator[Expression]:
    """All nodes of an expression, those inside reductions too."""
    for part in parts(expression):
        yield part
        if isinstance(part, Reduced):
            yield from all_parts(part.inner)


def reductions(expression: Expression) -> list[Reduced]:
    """The outermost reductions in an expression, each once."""
    return list(dict.fromkeys(part for part in parts(expression) if isinstance(part, Reduced)))


def names_outside(expression: Expression) -> list[Name]:
    """The names of an expression outside all reductions, each once."""
    return list(dict.fromkeys(part for part in parts(expression) if isinstance(part, Name)))


class State:
    """The state at a time: `state["pen.x"]`, places, TIME, parameters, and the reductions over time by their names.

    `max`, `min`, `range` (the largest less the smallest), `mean` and `rms` are over the time points, `integral` is by
    trapezoids between them, `initial` and `final` are at the first and last time, `argmax` and `argmin` are times.
    """

    def __init__(self, description: Description) -> None:
        self._description = description

    def __getitem__(self, name: str) -> Expression:
        d = self._description
        return Name(name) if name in d.parameters else named_quantity(d, name)

    @property
    def time(self) -> Expression:
        """The time."""
        return TIME

    def position(self, name: str) -> Array:
        """(3,): the origin of a body or frame."""
        return self._vector(name, ("x", "y", "z"))

    def velocity(self, name: str) -> Array:
        """(3,): its velocity."""
        return self._vector(name, ("vx", "vy", "vz"))

    def acceleration(self, name: str) -> Array:
        """(3,): its acceleration."""
        return self._vector(name, ("ax", "ay", "az"))

    def _vector(self, name: str, parts: tuple[str, ...]) -> Array:
        return np.array([self[f"{name}.{part}"] for part in parts], dtype=object)

    def __getattr__(self, name: str) -> Callable[[Any], Expression]:
        """A reduction by its name, as a function of an expression: `state.max(state["pen.x"])`."""
        if name not in REDUCTIONS:
            raise AttributeError(f"a state has no {name!r}; reductions over time are {', '.join(REDUCTIONS)}")
        return lambda x: Reduced(name, as_expression(x))

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *REDUCTIONS]
