"""The state that functions of users get: expressions of its quantities, and reductions of expressions over time."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwright.model.description import Description
from linkwright.model.expression import TIME, Expression, Name, as_expression
from linkwright.outputs.measures import Reduced, named_quantity
from linkwright.spatial.algebra import Array


class State:
    """The state at a time: `state["pen.x"]`, places, TIME, parameters, and numbers of all times."""

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

    def max(self, x: Any) -> Expression:
        """The largest of all times."""
        return Reduced("max", as_expression(x))

    def min(self, x: Any) -> Expression:
        """The smallest of all times."""
        return Reduced("min", as_expression(x))

    def mean(self, x: Any) -> Expression:
        """The mean over the time points."""
        return Reduced("mean", as_expression(x))

    def rms(self, x: Any) -> Expression:
        """The root of the mean square over the time points."""
        return Reduced("rms", as_expression(x))

    def integral(self, x: Any) -> Expression:
        """The integral over time, by trapezoids between the time points."""
        return Reduced("integral", as_expression(x))

    def range(self, x: Any) -> Expression:
        """The largest less the smallest."""
        return Reduced("range", as_expression(x))

    def initial(self, x: Any) -> Expression:
        """The value at the first time."""
        return Reduced("initial", as_expression(x))

    def final(self, x: Any) -> Expression:
        """The value at the last time."""
        return Reduced("final", as_expression(x))
