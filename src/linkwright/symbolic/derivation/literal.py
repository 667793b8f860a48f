"""Descriptions whose numbers are named parameters, and elementary links: each turns about or shifts along one axis,
with exact formulas as numbers.

A joint of several coordinates is a row of elementary links, all but the last without mass. Link axes are those of the
joint's frame on the body; inertial parameters are given in the body's own frame, as in the description.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from linkwright.errors import ModelError, NameNotFound
from linkwright.model.description import BODY_ARRAYS, Description
from linkwright.model.elements import Element, JointForce
from linkwright.model.expression import Call, Expression, Name, Number, as_expression
from linkwright.model.quantities import Slot, damper, friction, match
from linkwright.model.topology import Topology, span
from linkwright.symbolic.formulas.exact import ZERO, Matrix
from linkwright.symbolic.formulas.formula import Angle, Sum, Symbol, evaluate, symbols
from linkwright.symbolic.formulas.ring import Turn

Vector = tuple[Sum, ...]  # x, y, z
NONE: Vector = (ZERO, ZERO, ZERO)


@dataclass(frozen=True)
class Inertial:
    """A body's mass, centre of mass and inertia about it (xx, yy, zz, xy, xz, yz), in its own frame."""

    name: str
    mass: Sum
    com: Vector
    inertia: tuple[Sum, ...]

    @property
    def weighs(self) -> bool:
        """Whether it has mass or inertia."""
        return any((self.mass, *self.inertia))


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
    shift: Sum = ZERO  # metres per unit of the coordinate: 1 of a shift, the pitch of a screw, 0 of a turn
    angle: Turn = ()
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


#: What can be named: a word for each sort of number.
WORDS = ("mass", "com", "inertia", "armature", "friction", "lengths", "gravity")
#: Words that stand for several.
PRESETS: dict[str, tuple[str, ...]] = {"named": (), "inertial": WORDS[:5], "all": WORDS}
_ENTRIES = {
    "mass": ("m",),
    "com": ("x", "y", "z"),
    "inertia": ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz"),
}
#: The linear parameters of a body that regressors belong to, about the link's origin in link axes, and of a motor.
LETTERS = ("m", "mx", "my", "mz", "Jxx", "Jyy", "Jzz", "Jxy", "Jxz", "Jyz")
MOTOR = "J"
_AXES = ("x", "y", "z")
_NOISE = 1e-14  # of the largest length: what rounding leaves of a zero


def literal(
    description: Description,
    which: str | Collection[str] = "inertial",
    *,
    zeros: bool | None = None,
    coordinates: str = "q",
) -> Description:
    """The same mechanism with its numbers as parameters of their values.

    `which` is "named" (only the model's own parameters), "inertial" (mass, com, inertia, armature, friction), "all"
    (lengths and gravity too), or a collection of these words. Bodies are counted from 1 in the order of the tree;
    for body k, or the joint that carries it, the names are

    - mass m1; com x1 y1 z1; inertia Ixx1 Iyy1 Izz1 Ixy1 Ixz1 Iyz1, about the centre of mass in body axes;
    - armature J1; friction V1 (viscous) and f1 (Coulomb), of the forces that act on the joint. On a joint of several
      rates V1_2 is that of the second; a second damper on one rate is V1b;
    - lengths: for a chain placed as a Denavit–Hartenberg table does (either convention), a2 and d3 of rows 2 and 3;
      otherwise px1 py1 pz1, where the joint is on the body that carries it, and bx1 by1 bz1, where it is on its own;
    - gravity: g, its size; the direction stays.

    A number that is zero stays zero, but with "inertial" and "all" every body that weighs gets all its ten inertial
    symbols, as general arms want: products of inertia that happen to vanish too. (If no body weighs, each one gets
    them.) `zeros=True` does so for bodies without mass too, and `zeros=False` for none. Bodies that cannot move have
    no part in the equations and keep their numbers. A number that is bound to an expression already stays so.
    """
    d = description
    words, general = _words(which)
    if not words:
        return d
    topology = span(d)
    names = _Names(d, coordinates)
    for word in BODY_ARRAYS:
        if word in words:
            _name_bodies(d, topology, names, word, general if zeros is None else zeros, every=zeros is True)
    elements = d.elements
    if "armature" in words:
        for k, joint in enumerate(topology.joint.tolist()):
            if d.armature[joint] != 0.0 and d.kind_of(joint).nv:
                names.bind("armature", joint, f"J{k + 1}", float(d.armature[joint]), f"of joint {_joint(d, joint)}")
    if "friction" in words:
        elements = tuple(_name_losses(d, topology, names))
    if "lengths" in words:
        _name_lengths(d, topology, names)
    if "gravity" in words:
        _name_gravity(d, names)
    return replace(d, parameters=names.parameters, bindings=names.bindings, elements=elements)


def _words(which: Any) -> tuple[frozenset[str], bool]:
    """The words asked for, and whether as a preset that makes every inertial number a symbol."""
    if isinstance(which, str):
        if which in PRESETS:
            return frozenset(PRESETS[which]), True
        which = (which,)
    if not isinstance(which, Collection):
        text = f"literal={which!r}; give one of {', '.join(PRESETS)}, or a list of the words {', '.join(WORDS)}"
        raise ModelError(text)
    for word in which:
        if word not in WORDS:
            raise NameNotFound("choice of literal", str(word), [*PRESETS, *WORDS])
    return frozenset(which), False


class _Names:
    """The parameters and bindings as they grow; a name that stands for something already is refused."""

    def __init__(self, d: Description, stem: str) -> None:
        self.parameters, self.bindings = dict(d.parameters), dict(d.bindings)
        self._coordinates = tuple(dots + stem for dots in ("", "d", "dd"))

    def add(self, name: str, value: float, what: str) -> Name:
        """A new parameter."""
        if name in self.parameters:
            text = f"the model has a parameter {name!r}, and {what} would get the same name"
            raise ModelError(f"{text}; rename the parameter, or leave this sort of number out of which=", element=name)
        for stem in self._coordinates:
            if name.startswith(stem) and name[len(stem) :].isdecimal():
                text = f"{name!r} would be both a coordinate (or its rate) and {what}"
                raise ModelError(f"{text}; choose another stem: coordinates='theta'", element=name)
        self.parameters[name] = value
        return Name(name)

    def bind(self, array: str, at: int, name: str, value: float, of: str) -> None:
        """A new parameter for an entry of an array that is not bound yet."""
        if (array, at) not in self.bindings:
            self.bindings[array, at] = self.add(name, value, f"the {array} {of}")

    def free(self, array: str, places: Iterable[int]) -> bool:
        """Whether none of these entries is bound."""
        return not any((array, at) in self.bindings for at in places)


def _joint(d: Description, joint: int) -> str:
    return repr(d.joint_names[joint])


# -- bodies ---------------------------------------------------------------------------------------------------------
def _name_bodies(d: Description, t: Topology, names: _Names, array: str, zeros: bool, *, every: bool) -> None:
    letters, values = _ENTRIES[array], getattr(d, array).reshape(d.nb, -1)
    weighs = weighing(d)
    none = not any(weighs)
    for k, (body, moves) in enumerate(zip(t.body.tolist(), moving(d, t), strict=True)):
        if not moves:
            continue
        for e, letter in enumerate(letters):
            value = float(values[body, e])
            if value != 0.0 or (zeros and (every or none or weighs[body])):
                of = f"of body {d.body_names[body]!r}"
                names.bind(array, body * len(letters) + e, f"{letter}{k + 1}", value + 0.0, of)


def weighing(d: Description, arrays: Collection[str] = BODY_ARRAYS) -> list[bool]:
    """Of each body, whether it has mass or inertia, or something of these arrays as parameters."""
    bound = {flat // len(_ENTRIES[name]) for name, flat in d.bindings if name in arrays}
    return [bool(d.mass[b] != 0.0 or d.inertia[b].any() or b in bound) for b in range(d.nb)]


def moving(d: Description, t: Topology) -> list[bool]:
    """Of each tree position, whether a joint with a freedom lies between its body and ground."""
    return carried(t.parent.tolist(), (d.kind_of(joint).nv > 0 for joint in t.joint.tolist()))


def carried(parents: Iterable[int], free: Iterable[bool]) -> list[bool]:
    """Of each link, parents first, whether it or one that carries it is free."""
    moving: list[bool] = []
    for parent, moves in zip(parents, free, strict=True):
        moving.append(moves or (parent >= 0 and moving[parent]))
    return moving


# -- friction -------------------------------------------------------------------------------------------------------
def _name_losses(d: Description, t: Topology, names: _Names) -> Iterator[Element]:
    """The force elements, with the numbers of dampers and of friction on tree joints as parameters."""
    position = {d.joint_names[j]: k for k, j in enumerate(t.joint.tolist())}
    met: Counter[str] = Counter()
    for element in d.elements:
        if not isinstance(element, JointForce) or element.joint not in position:
            yield element
            continue
        several = d.kind_of(d.joint_names.position("joint", element.joint)).nv > 1
        rate = f"{position[element.joint] + 1}" + (f"_{element.index + 1}" if several else "")

        def named(stem: str, size: float, rate: str = rate, what: str = element.name) -> Name:
            met[stem + rate] += 1
            again = met[stem + rate]
            name = f"{stem}{rate}" + ("" if again == 1 else chr(ord("a") + again - 1) if again <= 26 else f"_{again}")
            return names.add(name, size, f"the friction of {what!r}")

        yield replace(element, law=_with_losses(element.law, named))


def _with_losses(law: Expression, named: Callable[[str, float], Name]) -> Expression:
    """A damper, friction, or the sum of both, with names for their sizes; any other law as it is."""
    v, size, speed = Name("v"), Slot("size"), Slot("speed")
    if isinstance(law, Call) and law.function == "add":
        first, second = law.arguments
        parts = _with_losses(first, named), _with_losses(second, named)
        return law if parts == law.arguments else Call("add", parts)
    slots = match(damper(v, size), law, ())
    if slots is not None:
        c = slots["size"]
        return damper(v, named("V", c.value)) if isinstance(c, Number) and c.value != 0.0 else law
    slots = match(friction(v, size, speed), law, ())
    if slots is not None:
        f = slots["size"]
        return friction(v, named("f", f.value), slots["speed"]) if isinstance(f, Number) and f.value != 0.0 else law
    return law


# -- lengths and gravity --------------------------------------------------------------------------------------------
def _name_lengths(d: Description, t: Topology, names: _Names) -> None:
    scale = max(float(np.abs(d.pi).max(initial=0.0)), float(np.abs(d.pj).max(initial=0.0)))
    if _name_rows(d, t, names, scale * _NOISE):
        return
    for k, (joint, back) in enumerate(zip(t.joint.tolist(), t.reverse.tolist(), strict=True)):
        for stem, array in zip("pb", ("pj", "pi") if back else ("pi", "pj"), strict=True):
            for e, axis in enumerate(_AXES):
                value = float(getattr(d, array)[joint, e])
                if abs(value) > scale * _NOISE:
                    names.bind(array, 3 * joint + e, f"{stem}{axis}{k + 1}", value, f"of joint {_joint(d, joint)}")


def _name_rows(d: Description, t: Topology, names: _Names, noise: float) -> bool:
    """Name a and d of every row if the joints are placed as a Denavit–Hartenberg table places them."""
    joints = t.joint
    chain = np.array_equal(t.parent, np.arange(-1, len(t) - 1)) and not t.reverse.any()
    ri, pi, rj, pj = d.ri[joints], d.pi[joints], d.rj[joints], d.pj[joints]
    z = ri[:, :, 2]  # the joint's axis on the body before
    shift = np.einsum("ni,ni->n", pi, z)
    across = pi - shift[:, None] * z
    modified = (np.abs(z[:, 0]) < _NOISE).all() and (np.abs(across[:, 1:]) <= noise).all()
    modified = modified and np.array_equal(rj, np.broadcast_to(np.eye(3), rj.shape)) and not pj.any()
    standard = (np.abs(z - [0.0, 0.0, 1.0]) < _NOISE).all() and (np.abs(across) <= noise).all()
    standard = standard and (np.abs(rj[:, 0] - [1.0, 0.0, 0.0]) < _NOISE).all() and (np.abs(pj[:, 1:]) <= noise).all()
    if not chain or not (modified or standard):
        return False
    for k, joint in enumerate(joints.tolist()):
        array, sign = ("pi", 1.0) if modified else ("pj", -1.0)
        a, offset = sign * float(getattr(d, array)[joint, 0]), float(shift[k])
        places = [(3 * joint + e, float(z[k, e])) for e in range(3) if abs(z[k, e]) >= _NOISE]
        if abs(a) > noise and names.free(array, (3 * joint,)):
            symbol = names.add(f"a{k + 1}", a, f"the length a of row {k + 1}")
            names.bindings[array, 3 * joint] = _multiple(sign, symbol)
        if abs(offset) > noise and names.free("pi", (at for at, _ in places)):
            symbol = names.add(f"d{k + 1}", offset, f"the offset d of row {k + 1}")
            tilt = Number(float(np.arctan2(-z[k, 1], z[k, 2])))
            cosines = {1: -Call("sin", (tilt,)), 2: Call("cos", (tilt,))}  # which show the angle
            for at, factor in places:
                entry = _multiple(factor, symbol) if len(places) == 1 else cosines[at % 3] * symbol
                names.bindings["pi", at] = entry
    return True


def _name_gravity(d: Description, names: _Names) -> None:
    size = float(np.linalg.norm(d.gravity))
    if size == 0.0 or not names.free("gravity", range(3)):
        return
    g = names.add("g", size, "gravity")
    for k, part in enumerate((d.gravity / size).tolist()):
        if part != 0.0:
            names.bindings["gravity", k] = _multiple(part, g)


def _multiple(factor: float, symbol: Name) -> Expression:
    """factor · symbol, without factors of one."""
    if abs(factor) == 1.0:
        return symbol if factor > 0.0 else -symbol
    return as_expression(factor) * symbol
