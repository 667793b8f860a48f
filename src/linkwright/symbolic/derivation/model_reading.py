"""From a description whose joints form a tree to elementary links, with its numbers and laws as exact formulas."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from linkwright.base.arguments import check_names
from linkwright.errors import ModelError
from linkwright.model.description import Description
from linkwright.model.element_names import kind_of_element, names_of_elements
from linkwright.model.elements import JointForce
from linkwright.model.expression import Expression, Name, Number, replaced
from linkwright.model.topology import Topology, of_first_leader, span
from linkwright.symbolic.derivation.exact_numbers import (
    Angles,
    Basis,
    Multiples,
    angles_in,
    from_expression,
    plain,
    tabulated,
)
from linkwright.symbolic.derivation.literal import Inertial, Link, Model, Rotor, Vector
from linkwright.symbolic.formulas.exact import (
    NEAR,
    ONE,
    ZERO,
    Matrix,
    added,
    decimal,
    negated,
    product,
    rational,
    scaled,
    times,
    turn,
)
from linkwright.symbolic.formulas.formula import Sum, Symbol, number, symbols, tidied

_AXES = "xyz"
Names = Mapping[str, Sum]
_NO_NAMES: Names = {}


def model_of(
    description: Description,
    *,
    coordinates: str = "q",
    digits: int | None = None,
    sums: bool = True,
    numbers: Collection[str] = (),
) -> Model:
    """The elementary links of a description whose joints form a tree.

    `digits` rounds the cosines of angles that are no multiples of 15°; without it these angles become symbols. `sums`
    takes angles along parallel axes as sums. `numbers` are parameters that stand for their values.
    """
    return _Reader(description, coordinates, digits, numbers).model(sums)


class _Reader:
    """Reads one description."""

    def __init__(self, description: Description, stem: str, digits: int | None, numbers: Collection[str]) -> None:
        self.d, self.stem = description, stem
        if isinstance(numbers, str) or not isinstance(numbers, Collection):
            text = f"numbers={numbers!r}; give a list of parameters, such as ['m1'], or 'all'"
            raise ModelError(text)
        check_names("parameter", numbers, description.parameters)
        self.folded: dict[Expression, Expression] = {Name(n): Number(description.parameters[n]) for n in numbers}
        if not isinstance(stem, str) or not stem.isidentifier() or stem[-1].isdigit():
            text = f"coordinates={stem!r}; give the letters that stand before the numbers, such as 'q' or 'theta'"
            raise ModelError(text, element=str(stem))
        self.topology = span(description)
        _refuse(description, self.topology)
        self.couplings = {m.follower: (m.leader, k) for k, m in enumerate(description.mimics)}
        self.coordinates: list[Symbol] = []
        self.joints: list[str] = []
        self.links: list[Link] = []
        self.last: list[int] = []  # the elementary link of each tree position
        self.left_out: list[str] = []
        self.first: dict[int, int] = {}  # the first coordinate of each joint, of its leader's if it follows
        self.bindings = {key: self.put(e) for key, e in description.bindings.items()}
        self.named = {key for key, e in self.bindings.items() if e.names()}
        self.count()
        self.angles = Angles((*description.parameters, *self.moving()), digits, self.turned())

    # -- numbers --------------------------------------------------------------------------------------
    def put(self, e: Expression) -> Expression:
        """An expression with the parameters that stand for their values put in."""
        return replaced(e, self.folded) if self.folded else e

    def turned(self) -> Iterator[Multiples]:
        """The combinations of parameters that the description has cosines of."""
        laws = [self.put(element.law) for element in self.d.elements if isinstance(element, JointForce)]
        for e in (*self.bindings.values(), *laws):
            yield from angles_in(e)

    def bound(self, array: str, k: int, width: int) -> list[Expression | None]:
        """The expressions of a row of a description's array, None where it has a number."""
        return [self.bindings.get((array, at)) for at in range(k * width, (k + 1) * width)]

    def free(self, array: str, k: int, width: int) -> bool:
        """Whether a row of a description's array has parameters in it."""
        return not self.named.isdisjoint([(array, at) for at in range(k * width, (k + 1) * width)])

    def formula(self, e: Expression, exact: Callable[[float], Sum] = decimal, names: Names = _NO_NAMES) -> Sum:
        """An expression, with the parameters that stand for their values put in, as a formula."""
        return from_expression(e, exact, names, self.angles.combined)

    def number(self, x: float, e: Expression | None) -> Sum:
        """A number that may come from an expression."""
        if e is None:
            return decimal(x)
        return self.formula(e) if e.names() else plain(e) or decimal(x)

    def row(self, array: str, k: int) -> Vector:
        """A row of a description's array as formulas."""
        numbers = np.asarray(getattr(self.d, array)[k], dtype=np.float64).reshape(-1)
        return tuple(self.number(x, e) for x, e in zip(numbers, self.bound(array, k, numbers.size), strict=True))

    def rotation(self, array: str, joint: int, label: str) -> tuple[Matrix, ...]:
        """A frame's rotation as a product."""
        bound = self.bound(array, joint, 9)
        r = getattr(self.d, array)[joint]
        if not self.free(array, joint, 9):
            return tuple(self.angles.rotation(r, label))
        formulas = [None if e is None else self.formula(e, self.angles.entry) for e in bound]
        # Numbers after the expressions, which may name their angles.
        entries = [self.angles.entry(x) if e is None else e for x, e in zip(r.reshape(-1), formulas, strict=True)]
        return (tuple(tuple(entries[3 * i : 3 * i + 3]) for i in range(3)),)

    def between(self, up: tuple[str, int] | None, down: tuple[str, int], label: str) -> tuple[Matrix, ...]:
        """The rotation from one frame on a body to another: upᵀ down."""
        if any(self.free(a, j, 9) for a, j in filter(None, (up, down))):
            start = _transposed(self.rotation(*up, f"{label}b")) if up else ()
            return (*start, *self.rotation(*down, label))
        r = getattr(self.d, down[0])[down[1]]
        if up:
            r = getattr(self.d, up[0])[up[1]].T @ r
        return tuple(self.angles.rotation(r, label))

    # -- links ----------------------------------------------------------------------------------------
    def model(self, sums: bool) -> Model:
        d = self.d
        for i in range(len(self.topology)):
            self.add(i)
        basis = Basis(self.coordinates, self.links, sums)
        rotors = self.rotors()
        return Model(
            d.name,
            tuple(self.coordinates),
            tuple(self.joints),
            tuple(basis.angles),
            tuple(replace(link, angle=basis.turns.get(k, ())) for k, link in enumerate(self.links)),
            self.gravity(),
            tuple(
                added(*(scaled(r.inertia, factor) for r in rotors for at, factor in r.at if at == k))
                for k in range(len(self.coordinates))
            ),
            *self.forces(),
            {**d.parameters, **self.angles.values},
            tuple(self.left_out),
            rotors,
        )

    def count(self) -> None:
        """Coordinates for the joints."""
        for joint in self.topology.joint.tolist():
            if joint in self.couplings:
                continue
            self.first[joint] = len(self.coordinates)
            for _ in range(self.d.kind_of(joint).nv):
                self.coordinates.append(Symbol(f"{self.stem}{len(self.coordinates) + 1}", "coordinate"))
                self.joints.append(self.d.joint_names[joint])
        gears = self.d.leaders
        for follower in gears:
            self.first[follower] = self.first[of_first_leader(gears, follower)[0]]
        for name in self.moving():
            if name in self.d.parameters:
                text = f"parameter {name!r} has the name of a coordinate or a rate; choose coordinates='theta', say"
                raise ModelError(text, element=name)

    def moving(self) -> list[str]:
        """The names of coordinates, rates and accelerations."""
        return [dots + q.name for dots in ("", "d", "dd") for q in self.coordinates]

    def add(self, i: int) -> None:
        """The elementary links of tree position i."""
        d, t = self.d, self.topology
        joint, body, up = int(t.joint[i]), int(t.body[i]), int(t.parent[i])
        back = bool(t.reverse[i])
        near, far = ("j", "i") if back else ("i", "j")
        label = str(i + 1)
        parent_frame = None
        turned: tuple[Matrix, ...] = ()
        if up >= 0:
            side, carrier = "i" if t.reverse[up] else "j", int(t.joint[up])
            parent_frame = (f"r{side}", carrier)
            turned = _transposed(self.rotation(*parent_frame, str(up + 1)))
        # The placement first: it names its angles.
        placed = self.between(parent_frame, (f"r{near}", joint), label)
        origin = tuple(((*turned, *r), v) for r, v in self.origin(near, joint, label, along=not turned))
        if up >= 0:
            origin = (*origin, (turned, tuple(map(negated, self.row(f"p{side}", carrier)))))
        ratio, offset = self.coupling(joint)
        steps = self.steps(joint)
        if back:
            steps, ratio, offset = steps[::-1], -ratio, negated(offset)
        parent = self.last[up] if up >= 0 else -1
        for part, k in steps:
            if part == "Rx-":
                placed = (*placed, turn(0, ZERO, ONE if back else number(-1)))
                continue
            axis, turns = _AXES.index(part[1]), part[0] in "RH"
            shift = ONE if part[0] == "T" else self.row("pitch", joint)[0] if part[0] == "H" else ZERO
            if turns and offset:
                placed = (*placed, turn(axis, *self.angles.pair(float(offset.terms[0].number), f"delta{label}")))
            if not ratio:  # it follows at a standstill
                along = tuple(product(offset, shift) if k == axis else ZERO for k in range(3))
                origin = (*origin, (placed, along))
                continue
            self.links.append(Link(parent, placed, origin, axis, k, ratio, product(offset, shift), turns, shift))
            parent, placed, origin = len(self.links) - 1, (), ()
        if placed or origin:  # a fixed joint
            self.links.append(Link(parent, placed, origin))
        frame = self.rotation(f"r{far}", joint, label)
        name, mass = d.body_names[body], self.row("mass", body)[0]
        inertial = Inertial(name, mass, self.row("com", body), self.row("inertia", body))
        place = (_transposed(frame), self.row(f"p{far}", joint))
        self.links[-1] = replace(self.links[-1], body=inertial, back=place)
        self.last.append(len(self.links) - 1)

    def origin(self, side: str, joint: int, label: str, *, along: bool) -> list[tuple[tuple[Matrix, ...], Vector]]:
        """Where a joint is on a body, as vectors to be turned and added.

        A shift along the joint's own axis is one if `along` says so and the rest is shorter for it, as in a table of
        Denavit and Hartenberg: its entries on the body have the cosines of the axis in them.
        """
        p, r = getattr(self.d, f"p{side}")[joint], getattr(self.d, f"r{side}")[joint]
        shift = float(p @ r[:, 2])
        across = p - shift * r[:, 2]
        across[np.abs(across) < NEAR * np.abs(p).max(initial=0.0)] = 0.0
        shorter = np.count_nonzero(across) + 1 < np.count_nonzero(p) or (not across.any() and np.count_nonzero(p) > 1)
        axis = self.bound(f"r{side}", joint, 9)[2::3]
        free = self.free(f"p{side}", joint, 3) or any(e is not None and e.names() for e in axis)
        if free or not along or not shorter:
            return [((), self.row(f"p{side}", joint))]
        return [
            ((), tuple(decimal(float(f"{a:.15g}")) for a in across)),
            (self.rotation(f"r{side}", joint, label), (ZERO, ZERO, decimal(float(f"{shift:.15g}")))),
        ]

    def steps(self, joint: int) -> list[tuple[str, int]]:
        """The parts of a joint's transform, each with its coordinate."""
        parts = self.d.kind_of(joint).parts
        return [(part, self.first[joint] + k - parts[:k].count("Rx-")) for k, part in enumerate(parts)]

    def coupling(self, joint: int) -> tuple[Fraction, Sum]:
        """How a joint's coordinate follows: ratio·q + offset."""
        if joint not in self.couplings:
            return Fraction(1), ZERO
        leader = joint
        while leader in self.couplings:
            name, (leader, k) = self.d.joint_names[leader], self.couplings[leader]
            if self.free("gear", k, 2):
                text = f"the coupling of joint {name!r} depends on a parameter; give its ratio as a number"
                raise ModelError(text, element=name)
        gears = {j: (leader, rational(r), rational(o)) for j, (leader, r, o) in self.d.leaders.items()}
        _, ratio, offset = of_first_leader(gears, joint)
        return ratio, number(offset)

    def gravity(self) -> Vector:
        both = zip(self.d.gravity, self.bound("gravity", 0, 3), strict=True)
        return tuple(self.number(x, e) for x, e in both)

    def rotors(self) -> tuple[Rotor, ...]:
        """Motor inertia of each joint."""
        d, rotors = self.d, []
        for position, joint in enumerate(self.topology.joint.tolist(), start=1):
            kind, rotor = d.kind_of(joint), self.row("armature", joint)[0]
            if kind.nv and kind.paired:
                factor = self.coupling(joint)[0] ** 2
                first = self.first[joint]
                at = tuple((k, factor) for k in range(first, first + kind.nv)) if factor else ()
                rotors.append(Rotor(position, rotor, at))
            elif rotor and kind.nv:
                name = d.joint_names[joint]
                text = (
                    f"joint {name!r} is {kind.name} and has motor inertia about its body's axes, which has no place in "
                    "equations by angles; take it away, or use universal and revolute joints"
                )
                raise ModelError(text, element=name)
        return tuple(rotors)

    def forces(self) -> tuple[tuple[Sum, ...], tuple[Sum, ...]]:
        """What joints' own laws hold against each coordinate: with its rate in it (friction), and without (springs)."""
        d = self.d
        friction, springs = ([ZERO for _ in self.coordinates] for _ in range(2))
        for element in d.elements:
            joint = d.joint_names.find(element.joint) if isinstance(element, JointForce) else None
            if joint is None or not isinstance(element, JointForce) or not d.kind_of(joint).paired:
                self.left_out += names_of_elements([element])
                continue
            if tabulated(element.law) or not element.law.names() <= {"q", "v", *d.parameters}:
                self.left_out.append(f"joint force {element.name!r}")
                continue
            k = self.first[joint] + element.index
            ratio, offset = self.coupling(joint)
            if not ratio:
                continue
            q = self.coordinates[k]
            coupled = {
                "q": added(times(ratio, q), offset),
                "v": times(ratio, Symbol(f"d{q.name}", "rate", q.name)),
            }
            for term in scaled(tidied(self.formula(self.put(element.law), names=coupled)), -ratio):
                moving = any(s.role == "rate" for s in symbols(Sum((term,))).values())
                forces = friction if moving else springs
                forces[k] = added(forces[k], Sum((term,)))
        return tuple(friction), tuple(springs)


def _transposed(rotations: tuple[Matrix, ...]) -> tuple[Matrix, ...]:
    return tuple(tuple(zip(*r, strict=True)) for r in reversed(rotations))


def _refuse(d: Description, t: Topology) -> None:
    """Loop constraints (joints, rods, point constraints) and drivers have no closed form here."""
    held = [f"joint {d.joint_names[j]!r}" for j in t.loops]
    held += names_of_elements(d.point_constraints)
    if held:
        first = held[0] + (f" and {len(held) - 1} more" if len(held) > 1 else "")
        what = "joint" if t.loops else kind_of_element(d.point_constraints[0])
        text = (
            f"{d.name!r} has closed loops ({first}), whose equations have no closed form in its coordinates; "
            "use mech.forward_dynamics, linearise or lw.simulate for it, or cut the loop: take away "
            f"that {what} and ask for the equations of the tree that is left"
        )
        raise ModelError(text, element=held[0])
    for m in d.mimics:
        for joint in (m.follower, m.leader):
            if d.kind_of(joint).nv != 1:
                raise ModelError(f"joint {d.joint_names[joint]!r} is coupled and has more than one coordinate")
    if d.drivers:
        text = (
            f"driver {d.drivers[0].name!r} prescribes a motion; take the drivers away for the equations of the free "
            "mechanism, or lock the joint: mech.lock(...)"
        )
        raise ModelError(text, element=d.drivers[0].name)
    if not len(t):
        raise ModelError(f"{d.name!r} has no moving bodies, so it has no equations of motion")
