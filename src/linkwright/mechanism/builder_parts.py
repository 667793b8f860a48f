"""The pieces that a Builder hands out, and how it finds them again by object or by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.errors import ModelError, NameNotFound
from linkwright.mechanism.bound import Array, as_numbers, is_bound
from linkwright.mechanism.description import GROUND, kind_number
from linkwright.mechanism.elements import Driver, Element
from linkwright.mechanism.expression import Expression
from linkwright.mechanism.kinds import KIND_LIST
from linkwright.mechanism.laws import as_law
from linkwright.mechanism.quantities import Quantity, quantities

LAW_VARIABLES = ("q", "v", "d", "dd")
_PACKED = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


@dataclass(frozen=True)
class Body:
    """A body of a Builder; number −1 is ground."""

    name: str
    number: int


@dataclass(frozen=True, eq=False)
class Triad:
    """A frame on a body: z is its h axis, x its f axis."""

    body: Body
    rotation: Array
    origin: Array
    name: str | None


@dataclass(frozen=True)
class Joint:
    """A joint of a Builder."""

    name: str
    number: int
    kind: str


class Parts:
    """What has been named so far; every name that is not there, or there twice, is an error."""

    def __init__(self, ground: str) -> None:
        self.ground = Body(ground, GROUND)
        self._bodies: dict[str, Body] = {ground: self.ground}
        self._triads: dict[str, Triad] = {}
        self._joints: dict[str, Joint] = {}
        self._forces: dict[str, Element] = {}
        self._drivers: dict[str, Driver] = {}
        self._parameters: dict[str, float] = {}

    def _new_place(self, name: str) -> None:
        if not name:
            raise ModelError("a body or triad needs a name; give it one")
        if name in self._bodies or name in self._triads:
            raise ModelError(f"there is a body or triad {name!r} already; choose another name", element=name)

    def _new_force(self, name: str | None, stem: str) -> str:
        taken = self._forces.keys() | self._drivers.keys()
        if name is None:
            return next(n for k in range(1, len(taken) + 2) if (n := f"{stem}{k}") not in taken)
        if name in taken:
            raise ModelError(f"there is a driver or force {name!r} already; choose another name", element=name)
        return name

    def _body(self, body: Any) -> Body:
        found = self._bodies.get(name_of(body))
        if found is None or (isinstance(body, Body) and found != body):
            raise NameNotFound("body", name_of(body), list(self._bodies))
        return found

    def _triad(self, place: Any) -> Triad:
        if isinstance(place, Triad):
            self._body(place.body)
            return place
        if isinstance(place, str) and place in self._triads:
            return self._triads[place]
        if name_of(place) not in self._bodies:
            raise NameNotFound("body or triad", name_of(place), [*self._bodies, *self._triads])
        return Triad(self._body(place), np.eye(3), np.zeros(3), None)

    def _place(self, place: Any) -> str:
        """The name of a triad or body; a triad that is used by name gets one."""
        if isinstance(place, Triad) and place.name is None:
            known = next((n for n, t in self._triads.items() if t is place), None)
            if known is None:
                taken = self._triads.keys() | self._bodies.keys()
                known = next(n for k in range(1, len(taken) + 2) if (n := f"triad{k}") not in taken)
                self._triads[known] = place
            return known
        triad = self._triad(place)
        return triad.name or triad.body.name

    def _joint(self, joint: Any) -> Joint:
        found = self._joints.get(name_of(joint))
        if found is None or (isinstance(joint, Joint) and found != joint):
            raise NameNotFound("joint", name_of(joint), list(self._joints))
        return found

    def _check_index(self, joint: Joint, index: int, name: str) -> None:
        nv = KIND_LIST[kind_number(joint.kind)].nv
        if not 0 <= index < nv:
            text = f"{name!r} acts on coordinate {index} of {joint.name!r}, which is {joint.kind} and has {nv}"
            raise ModelError(text, element=joint.name)

    def _law(self, law: Any, variables: tuple[str, ...], *, measures: bool = False, what: str = "a law") -> Expression:
        """A law of these variables and parameters; with `measures` it may name coordinates, places and distances."""
        made = as_law(as_numbers(law, (), what) if not isinstance(law, Expression) else law, what)
        measured = {x.key for x in quantities(made)} if measures else set()
        for name in sorted(made.names() - measured):
            if name in variables and name in self._parameters:
                text = f"{name!r} is a variable of this law (q, v of a joint, d, dd of a distance) and a parameter"
                raise ModelError(f"{text} too; rename the parameter", element=name)
            if name not in variables and name not in self._parameters:
                raise NameNotFound("parameter or variable of a law", name, [*variables, *self._parameters])
        for quantity in quantities(made):
            self._check_quantity(quantity)
        return made

    def _check_quantity(self, quantity: Quantity) -> None:
        """Refuse a quantity of something that is not there."""
        if quantity.kind != "joint":
            for name in quantity.of:
                self._triad(name)
            return
        joint = self._joint(quantity.of[0])
        kind = KIND_LIST[kind_number(joint.kind)]
        if not quantity.rate and not kind.paired:
            text = f"{quantity} is a coordinate of a {joint.kind} joint, which has no plain coordinates; "
            raise ModelError(text + "name its rates, or the places and distances of its bodies", element=joint.name)
        if not 0 <= quantity.index < kind.nv:
            text = f"{quantity} is not there: joint {joint.name!r} is {joint.kind} and has {kind.nv}, counted from 0"
            raise ModelError(text, element=joint.name)


def packed_inertia(inertia: Any, owner: str) -> Array:
    """xx, yy, zz, xy, xz, yz from three or six numbers or a symmetric 3×3."""
    what = f"inertia of {owner!r}"
    try:
        shape = np.asarray(inertia).shape
    except ValueError:
        shape = ()
    if shape == (3, 3):
        full = as_numbers(inertia, shape, what)
        slack = 1e-9 * sum(abs(x) for x in full.reshape(-1) if not isinstance(x, Expression))
        for i, j in _PACKED[3:]:
            a, b = full[i, j], full[j, i]
            if a != b if is_bound([a, b]) else abs(a - b) > slack:
                raise ModelError(f"{what} is not symmetric: {a} and {b}; make them equal", element=owner)
        return np.array([full[i, j] for i, j in _PACKED])
    if shape == (3,):
        return np.concatenate([as_numbers(inertia, (3,), what), np.zeros(3)])
    return as_numbers(inertia, (6,), what)


def name_of(thing: Any) -> str:
    return str(getattr(thing, "name", thing))
