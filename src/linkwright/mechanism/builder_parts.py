"""The pieces that a Builder hands out, and how it finds them again by object or by name."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from linkwright.base.text import numbered_name
from linkwright.errors import ModelError, NameNotFound
from linkwright.mechanism.bound import Array, as_numbers, is_bound
from linkwright.mechanism.description import GROUND
from linkwright.mechanism.elements import Driver, Element
from linkwright.mechanism.expression import Expression
from linkwright.mechanism.frames import pack_inertia
from linkwright.mechanism.kinds import KINDS
from linkwright.mechanism.laws import as_law
from linkwright.mechanism.quantities import Quantity, quantities

T = TypeVar("T")
LAW_VARIABLES = ("q", "v", "d", "dd")


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
        return new_name(name, stem, self._forces.keys() | self._drivers.keys(), "driver or force")

    def _body(self, body: Any) -> Body:
        return _known("body", body, self._bodies)

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
                known = numbered_name("triad", self._triads.keys() | self._bodies.keys())
                self._triads[known] = place
            return known
        triad = self._triad(place)
        return triad.name or triad.body.name

    def _joint(self, joint: Any) -> Joint:
        return _known("joint", joint, self._joints)

    def _check_index(self, joint: Joint, index: int, name: str) -> None:
        nv = KINDS[joint.kind].nv
        if not 0 <= index < nv:
            text = f"{name!r} acts on coordinate {index} of {joint.name!r}, which is {joint.kind} and has {nv}"
            raise ModelError(text, element=joint.name)

    def _law(self, law: Any, variables: tuple[str, ...], *, measures: bool = False, what: str = "a law") -> Expression:
        """A law of these variables and parameters; with `measures` it may name coordinates, places and distances."""
        expression = as_law(as_numbers(law, (), what) if not isinstance(law, Expression) else law, what)
        measured = {x.key for x in quantities(expression)} if measures else set()
        for name in sorted(expression.names() - measured):
            if name in variables and name in self._parameters:
                text = f"{name!r} is a variable of this law (q, v of a joint, d, dd of a distance) and a parameter"
                raise ModelError(f"{text} too; rename the parameter", element=name)
            if name not in variables and name not in self._parameters:
                raise NameNotFound("parameter or variable of a law", name, [*variables, *self._parameters])
        for quantity in quantities(expression):
            self._check_quantity(quantity)
        return expression

    def _now(self, value: Any, what: str = "a law") -> float:
        """The present value of a number or an expression of parameters."""
        return float(self._law(value, (), what=what).evaluate(self._parameters))

    def _check_quantity(self, quantity: Quantity) -> None:
        """Refuse a quantity of something that is not there."""
        if quantity.kind != "joint":
            for name in quantity.of:
                self._triad(name)
            return
        joint = self._joint(quantity.of[0])
        kind = KINDS[joint.kind]
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
        for i, j in ((0, 1), (0, 2), (1, 2)):
            a, b = full[i, j], full[j, i]
            if a != b if is_bound([a, b]) else abs(a - b) > slack:
                raise ModelError(f"{what} is not symmetric: {a} and {b}; make them equal", element=owner)
        return pack_inertia(full)
    if shape == (3,):
        return np.concatenate([as_numbers(inertia, (3,), what), np.zeros(3)])
    return as_numbers(inertia, (6,), what)


def name_of(thing: Any) -> str:
    return str(getattr(thing, "name", thing))


def new_name(name: str | None, stem: str, taken: Container[str], what: str) -> str:
    """A name that is not taken: the one that is given, or the stem with a number."""
    if name is None:
        return numbered_name(stem, taken)
    if name in taken:
        raise ModelError(f"there is a {what} {name!r} already; choose another name", element=name)
    return name


def put(parts: dict[str, Any], part: T) -> T:
    """Keep a part under its name."""
    parts[name_of(part)] = part
    return part


def _known(what: str, part: Any, parts: dict[str, T]) -> T:
    """The part that an object or a name means; an object of another builder is an error."""
    known = parts.get(name_of(part))
    if known is None or (isinstance(part, type(known)) and known != part):
        raise NameNotFound(what, name_of(part), list(parts))
    return known
