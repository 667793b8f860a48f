"""Elementary links: each turns about or shifts along one axis, and numbers are exact formulas. Data, no algorithms.

A joint of several coordinates is a row of elementary links, all but the last without mass. Link axes are those of the
joint's frame on the body; inertial parameters are given in the body's own frame, as in the description.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from linkwright.symbolic.formulas.exact import ZERO, Matrix
from linkwright.symbolic.formulas.formula import Sum, Symbol, evaluate, symbols
from linkwright.symbolic.formulas.ring import Angle, Turn

Vector = tuple[Sum, ...]  # x, y, z
NONE: Vector = (ZERO, ZERO, ZERO)


@dataclass(frozen=True)
class Inertial:
    """A body's mass, centre of mass and inertia about it (xx, yy, zz, xy, xz, yz), in its own frame."""

    name: str
    mass: Sum
    com: Vector
    inertia: tuple[Sum, ...]


@dataclass(frozen=True)
class Link:
    """One elementary motion: placement in the parent's axes, then a turn or shift by ratio·coordinate + offset."""

    parent: int
    rotations: tuple[Matrix, ...]  # of the placement, to be multiplied
    origins: tuple[tuple[tuple[Matrix, ...], Vector], ...]  # of the placement: rotated vectors, to be added
    axis: int = 2
    coordinate: int = -1  # −1: no motion, a body held
    ratio: Fraction = Fraction(1)
    offset: Sum = ZERO  # of a shift; a turn's is in `rotations`
    turns: bool = False
    shift: Sum = ZERO  # metres a unit of the coordinate: 1 of a shift, the pitch of a screw, 0 of a turn
    angle: Turn = field(default=Turn(()))
    body: Inertial | None = None
    back: tuple[tuple[Matrix, ...], Vector] = ((), NONE)  # the body's frame in link axes: turned back, and the origin


@dataclass(frozen=True)
class Rotor:
    """The motor inertia of a joint: the number of the body it carries, and (coordinate, factor) where it acts."""

    body: int
    inertia: Sum
    at: tuple[tuple[int, Fraction], ...]


@dataclass(frozen=True)
class Model:
    """What the equations are made of."""

    name: str
    coordinates: tuple[Symbol, ...]
    joints: tuple[str, ...]  # of each coordinate, the joint
    angles: tuple[Angle, ...]
    links: tuple[Link, ...]
    gravity: Vector
    armature: tuple[Sum, ...]
    friction: tuple[Sum, ...]
    springs: tuple[Sum, ...]
    values: Mapping[str, float]
    left_out: tuple[str, ...] = ()
    rotors: tuple[Rotor, ...] = ()  # of every joint that a motor can turn

    def lacks(self, instead: str) -> tuple[str, ...]:
        """A note on the forces that are not in it, with what counts them instead; none if all are in."""
        return (f"Without {', '.join(self.left_out)}: {instead} counts every force.",) if self.left_out else ()

    @property
    def shifts(self) -> list[bool]:
        """Of each coordinate, whether it is a length."""
        turning = {link.coordinate for link in self.links if link.turns}
        return [j not in turning for j in range(len(self.coordinates))]

    def length(self, parameters: Mapping[str, float]) -> float:
        """The largest distance between a link's axes, frames and centre of mass (m); 0 if all are in one place."""
        vectors = [v for link in self.links for _, v in (*link.origins, link.back)]
        vectors += [link.body.com for link in self.links if link.body is not None]
        lengths = [x for v in vectors for x in v] + [link.offset for link in self.links]
        return max((abs(evaluate(x, parameters)) for x in lengths), default=0.0)

    def parameters(self) -> dict[str, float]:
        """The parameters and named angles that the equations have in them, with their values."""
        formulas = (*self.constants(), *self.friction, *self.springs)
        used = [s for formula in formulas for s in symbols(formula).values() if s.role == "parameter"]
        return {s.name: float(self.values[s.name]) for s in used if s.name in self.values}

    def constants(self) -> list[Sum]:
        """Every formula of parameters in it."""
        formulas = [*self.gravity, *self.armature]
        for link in self.links:
            formulas += _entries(link.rotations)
            formulas += [x for turned, v in (*link.origins, link.back) for x in (*v, *_entries(turned))]
            formulas += [link.offset, link.shift]
            if link.body is not None:
                formulas += [link.body.mass, *link.body.com, *link.body.inertia]
        return formulas


def _entries(matrices: tuple[Matrix, ...]) -> list[Sum]:
    return [x for r in matrices for row in r for x in row]
