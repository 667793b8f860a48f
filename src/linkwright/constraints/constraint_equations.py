"""The constraint equations of a mechanism: what is joined to what, with its numbers, in order; and those that close
a spanning tree.

Their equations, in their forms' order and scaling, are the rows of G and have the multipliers λ of M a + h = τ + Gᵀλ.
Redundant ones count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.constraints import constraint_forms as forms
from linkwright.constraints import coupling_forms, curve_forms
from linkwright.constraints.constraint_forms import Form
from linkwright.constraints.gear_rates import twist_units
from linkwright.errors import ModelError
from linkwright.model.coupling_relation import Relation, counted_by_relation, relation_of
from linkwright.model.curve_elements import PointOnCurve
from linkwright.model.curve_shapes import shape_of
from linkwright.model.description import GROUND, Description
from linkwright.model.drawing import drawn
from linkwright.model.elements import Coupling, Driver, GearPair, PointOnLine, Rod
from linkwright.model.expression import Expression, Number
from linkwright.model.gear_pairs import form_numbers
from linkwright.model.topology import Topology
from linkwright.spatial.rotation import euler_parameters_matrix

Group = Literal["joint", "rod", "point constraint", "gear pair", "gear", "coupling", "driver", "rotor"]
#: Where numbers of a record come from: an array of the description and a row of it, an expression, or as they are.
Numbers = tuple[str, int] | Expression | Floats
#: Within this sine two joint axes count as parallel: bodies are drawn roughly.
PARALLEL = 0.02


@dataclass(frozen=True)
class Source:
    """What a constraint is about: joints (of a gear the follower and the leader; all of a coupling), or frames."""

    joints: tuple[int, ...] = ()
    places: tuple[str, ...] = ()
    numbers: tuple[Expression, ...] = ()  # the length of a rod, the numbers of a gear pair
    gear: tuple[float, float] = (1.0, 0.0)  # ratio, offset
    index: int = 0  # of the coordinate that a driver drives
    relation: Relation | None = None  # of a coupling


@dataclass(frozen=True, eq=False)
class Constraint:
    """One joint, rod, point constraint, gear pair, gear, coupling or driver: a form, the bodies of its frames (−1 is
    ground), its record and its law.
    """

    name: str
    group: Group
    form: Form
    bodies: tuple[int, ...]
    record: Floats  # rotation (9) and origin (3) of each frame, then the form's own numbers
    source: Source
    numbers: tuple[Numbers, ...]  # where those of the record come from, in their order
    law: Expression | None = None

    def __str__(self) -> str:
        words = {"point on a curve": "point on curve", "tangent to a curve": "curve on curve"}
        return f"{words.get(self.form.kind, self.group)} {self.name!r}"


@dataclass(frozen=True, eq=False)
class JointAxes:
    """Joints of one kind: their constraints (k,), and of both sides their bodies (2, k) and where the axes (2, k, 9)
    stand in the records."""

    kind: str
    constraints: NDArray[np.int64]
    bodies: NDArray[np.int64]
    places: NDArray[np.int64]


class Equations:
    """All constraints of a description, and where their equations stand."""

    def __init__(self, description: Description) -> None:
        self.description = description
        self.start_r, self.start_p = drawn(description)
        self.constraints = tuple(map(self._checked, self._constraints()))

    @property
    def nb(self) -> int:
        return self.description.nb

    @cached_property
    def first(self) -> NDArray[np.int64]:
        """The number of each constraint's first equation, and at last how many there are."""
        return np.concatenate([[0], np.cumsum([c.form.size for c in self.constraints])]).astype(np.int64)

    @property
    def count(self) -> int:
        return int(self.first[-1])

    @cached_property
    def first_angle(self) -> NDArray[np.int64]:
        """The number of each constraint's first counted angle, and at last how many there are."""
        return np.concatenate([[0], np.cumsum([c.form.turns for c in self.constraints])]).astype(np.int64)

    @cached_property
    def record_at(self) -> NDArray[np.int64]:
        """The place of each constraint's record among all of them, and at last how many numbers they have."""
        return np.concatenate([[0], np.cumsum([len(c.record) for c in self.constraints])]).astype(np.int64)

    @cached_property
    def records(self) -> Floats:
        """The records of all constraints, one behind the other; a number for none."""
        return np.concatenate([c.record for c in self.constraints] or [np.zeros(1)])

    @cached_property
    def joint_axes(self) -> list[JointAxes]:
        """Where the axes of joints stand in the records, for each kind of joint."""
        by_kind: dict[str, list[int]] = {}
        for k, c in enumerate(self.constraints):
            if c.group == "joint":  # these come first
                by_kind.setdefault(self.description.kind_of(c.source.joints[0]).name, []).append(k)
        axes = []
        for kind, places in by_kind.items():
            bodies = np.array([self.constraints[k].bodies for k in places]).T
            first = self.record_at[places] + np.array([[0], [12]])
            axes.append(JointAxes(kind, np.array(places), bodies, first[:, :, None] + np.arange(9)))
        return axes

    def rows(self, k: int) -> slice:
        """The equations of one constraint among all."""
        return slice(int(self.first[k]), int(self.first[k + 1]))

    def equation(self, row: int) -> tuple[Constraint, str]:
        """The constraint that an equation belongs to, and what it is about."""
        k = int(np.searchsorted(self.first, row, side="right")) - 1
        return self.constraints[k], self.constraints[k].form.names[row - int(self.first[k])]

    @cached_property
    def drivers(self) -> tuple[int, ...]:
        return tuple(k for k, c in enumerate(self.constraints) if c.law is not None)

    @cached_property
    def timed(self) -> tuple[int, ...]:
        """The constraints with a Φ_t: drivers, and couplings with TIME in them."""
        return tuple(k for k, c in enumerate(self.constraints) if c.form.has_law)

    @cached_property
    def structure(self) -> str:
        """A digest of what the equations are but for the mechanism's numbers: what joins which bodies, and the laws."""
        rows = [(c.group, c.form.key, c.form.names, c.bodies, len(c.record), repr(c.law)) for c in self.constraints]
        text = repr(("constraint equations", self.nb, list(self.description.parameters), rows))
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def sizes(self) -> Floats:
        """A length for each body, by which turns are weighed against shifts."""
        return self.description.body_lengths

    @cached_property
    def arcs(self) -> Floats:
        """(nb, 6): what makes lengths of a body's shifts and turns: 1, and the body's size."""
        return np.repeat(np.stack([np.ones(self.nb), self.sizes], axis=1), 3, axis=1)

    @cached_property
    def units(self) -> Floats:
        """(nb, 6): by what the twist of each body is measured where shifts and turns of all are compared."""
        return twist_units(self.description, self.sizes)

    @property
    def size(self) -> float:
        """A length that is typical for the mechanism."""
        return self.description.length_scale

    def arms(self, size: Any) -> Floats:
        """(..., count): what makes lengths of the equations: 1, and for angles and sines the mechanism's size (...)."""
        return np.where(self._lengths, 1.0, np.asarray(size, dtype=np.float64)[..., None])

    @cached_property
    def _lengths(self) -> NDArray[np.bool_]:
        """(count,): which equations are lengths."""
        return np.array([flag for c in self.constraints for flag in c.form.lengths], dtype=bool)

    def _checked(self, c: Constraint) -> Constraint:
        """A constraint that has something to hold or to move; else an error that names it."""
        if all(body == GROUND for body in c.bodies):
            raise ModelError(f"{c} is on ground alone, where nothing moves; remove it", element=c.name)
        if len(c.bodies) > 1 and len(set(c.bodies)) == 1:
            body = self.description.body_names[c.bodies[0]]
            raise ModelError(f"{c} is within body {body!r} alone; remove it, or name two bodies", element=c.name)
        return c

    # -- from the description -------------------------------------------------------------------------------
    def _constraints(self) -> Iterator[Constraint]:
        d = self.description
        for j in range(d.nj):
            kind = d.kind_of(j)
            if kind.nv < 6:
                pitch: list[Numbers] = [("pitch", j)] if kind.name == "screw" else []
                yield self._constraint(d.joint_names[j], "joint", forms.joint(kind.name), Source((j,)), pitch)
        for k, m in enumerate(d.mimics):
            form = forms.gear(d.kind_of(m.follower).name, d.kind_of(m.leader).name)
            source = Source((m.follower, m.leader), gear=(m.ratio, m.offset))
            yield self._constraint(m.name or d.joint_names[m.follower], "gear", form, source, [("gear", k)])
        for constraint in d.point_constraints:
            if isinstance(constraint, Rod):
                source = Source(places=constraint.places, numbers=(constraint.length,))
                yield self._constraint(constraint.name, "rod", forms.ROD, source, source.numbers)
            elif isinstance(constraint, Coupling):
                yield self._coupling(constraint)
            elif isinstance(constraint, GearPair):
                source = Source(places=constraint.places, numbers=form_numbers(constraint))
                form = forms.gear_pair(constraint.kind)
                yield self._constraint(constraint.name, "gear pair", form, source, source.numbers)
            elif isinstance(constraint, PointOnCurve):
                yield self._on_curve(constraint)
            elif isinstance(constraint, PointOnLine):
                yield self._constraint(
                    constraint.name,
                    "point constraint",
                    forms.POINT_ON_LINE,
                    Source(places=(constraint.line, constraint.point)),
                )
            else:
                yield self._constraint(
                    constraint.name,
                    "point constraint",
                    forms.POINT_ON_PLANE,
                    Source(places=(constraint.plane, constraint.point)),
                )
        for driver in d.drivers:
            form, source = self._driven(driver)
            yield self._constraint(driver.name, "driver", form, source, law=driver.law)

    def _coupling(self, coupling: Coupling) -> Constraint:
        relation, joints, expressions = relation_of(self.description, coupling)
        numbers: list[Numbers] = [np.array([x.value]) if isinstance(x, Number) else x for x in expressions]
        form = coupling_forms.form(relation)
        return self._constraint(coupling.name, "coupling", form, Source(joints, relation=relation), numbers)

    def _on_curve(self, x: PointOnCurve) -> Constraint:
        shape, expressions = shape_of(x.curve, self.description.parameters)
        start, rate = x.start or Number(0.0), x.rate or Number(1.0)
        source = Source(places=x.places, numbers=(start, rate, *expressions))
        form = curve_forms.point_on_curve(shape, x.tangent)
        return self._constraint(x.name, "point constraint", form, source, source.numbers)

    def _driven(self, driver: Driver) -> tuple[Form, Source]:
        """The form of a driver, and what it drives."""
        d = self.description
        if driver.kind == "joint":
            j = d.joint_names.position("joint", driver.target)
            return forms.coordinate(d.kind_of(j).name, driver.index), Source((j,), index=driver.index)
        if driver.kind == "absolute":
            place, axis = driver.target.rsplit(".", 1)
            return forms.absolute("xyz".index(axis)), Source(places=(place,))
        assert driver.other is not None
        ends = Source(places=(driver.target, driver.other))
        if driver.kind == "distance":
            return forms.DISTANCE, ends
        return forms.angle(*driver.axes, about_h=self.drawn_parallel(driver)), ends

    def drawn_parallel(self, driver: Driver) -> bool:
        """Whether the joint axes of an angle driver are drawn parallel, and its axes across them."""
        if "h" in driver.axes:
            return False
        (r1, _), (r2, _) = (self.frame_as_drawn(x) for x in (driver.target, driver.other or ""))
        return float(np.linalg.norm(np.cross(r1[:, 2], r2[:, 2]))) < PARALLEL

    def frame_as_drawn(self, name: str) -> tuple[Floats, Floats]:
        """The axes and origin of a frame where its body is drawn."""
        body, r, p = self.description.frame(name)
        if body == GROUND:
            return r, p
        return self.start_r[body] @ r, self.start_p[body] + self.start_r[body] @ p

    def _constraint(
        self,
        name: str,
        group: Group,
        form: Form,
        source: Source,
        more: Sequence[Numbers] = (),
        law: Expression | None = None,
    ) -> Constraint:
        """A constraint of what its source has: frames, and behind these `more` numbers."""
        d, bodies, numbers = self.description, list[int](), list[Numbers]()
        for j in source.joints:
            bodies += int(d.parent[j]), int(d.child[j])
            numbers += ("ri", j), ("pi", j), ("rj", j), ("pj", j)
        for place in source.places:
            body, k = d.frame_number(place)
            bodies.append(body)
            numbers += [np.eye(3).reshape(-1), np.zeros(3)] if k is None else [("frame_r", k), ("frame_p", k)]
        numbers += more
        record = record_numbers(numbers, self._array, lambda x: x.evaluate(d.parameters))
        return Constraint(name, group, form, tuple(bodies), record, source, tuple(numbers), law)

    @cached_property
    def _array(self) -> Callable[[str], Floats]:
        d = self.description
        return cache(lambda name: np.asarray(getattr(d, name), dtype=np.float64).reshape(len(getattr(d, name)), -1))


def record_numbers(
    numbers: Sequence[Numbers],
    array: Callable[[str], Floats],
    evaluated: Callable[[Expression], Any],
    cases: tuple[int, ...] = (),
) -> Floats:
    """(..., numbers): a record, from the description's arrays (..., rows, numbers) by name; `cases` (n,) are first."""
    parts = []
    for source in numbers:
        if isinstance(source, tuple):
            parts.append(array(source[0])[..., source[1], :])
        elif isinstance(source, Expression):
            parts.append(np.asarray(evaluated(source), dtype=np.float64)[..., None])
        else:
            parts.append(np.broadcast_to(source, (*cases, len(source))))
    return np.concatenate(parts, axis=-1)


def own_numbers(c: Constraint, names: Mapping[str, Any]) -> list[Any]:
    """The numbers of a coupling's form behind those of its frames, for these values of the parameters."""
    numbers = c.numbers[4 * len(c.source.joints) :]
    return [x.evaluate(names) if isinstance(x, Expression) else float(np.asarray(x)[0]) for x in numbers]


def by_form(constraints: Sequence[Constraint]) -> dict[tuple[Form, tuple[bool, ...]], list[int]]:
    """The places of constraints by their form and by which of their frames are on moving bodies."""
    groups: dict[tuple[Form, tuple[bool, ...]], list[int]] = {}
    for k, c in enumerate(constraints):
        groups.setdefault((c.form, tuple(body != GROUND for body in c.bodies)), []).append(k)
    return groups


def joint_sides(d: Description, j: int) -> tuple[tuple[int, Floats, Floats], tuple[int, Floats, Floats]]:
    """The body, axes and origin of a joint's frame on its parent, and of that on its child, in the bodies' axes."""
    return (int(d.parent[j]), d.ri[j], d.pi[j]), (int(d.child[j]), d.rj[j], d.pj[j])


def joint_frames(d: Description, q: Floats, j: int) -> tuple[forms.Frame, forms.Frame]:
    """The two frames of a joint, in ground's axes, where the bodies are at the states q (nb, 7) or (n, nb, 7).

    A frame on ground is the same at all states, and stands once.
    """

    def placed(body: int, r: Floats, p: Floats) -> forms.Frame:
        if body == GROUND:
            return r, p
        turn = euler_parameters_matrix(q[..., body, 3:].T)
        turn = turn.transpose(*range(2, turn.ndim), 0, 1)
        return turn @ r, q[..., body, :3] + turn @ p

    first, second = joint_sides(d, j)
    return placed(*first), placed(*second)


def closing_constraints(equations: Equations, topology: Topology) -> list[Constraint]:
    """The joints that close loops, rods and point constraints, gears of joints that close loops, couplings, and
    drivers, each in the file's order.

    The spanning tree's own joints, and gears between them, are in its coordinates already.
    """
    loops = set(topology.loops)
    loop_constraints = [
        c for c in equations.constraints if c.group not in ("joint", "gear") or not loops.isdisjoint(c.source.joints)
    ]
    order = {"joint": 0, "rod": 1, "point constraint": 1, "gear pair": 1, "gear": 2, "coupling": 3, "driver": 4}
    return sorted(loop_constraints, key=lambda c: order[c.group])


def loop_constraints(d: Description, topology: Topology) -> tuple[Constraint, ...]:
    """All of a mechanism's, in the order of `closing_constraints`; a gear or coupling whose turns nothing counts is an
    error."""
    constraints = closing_constraints(Equations(d), topology)
    for c in constraints:
        if c.group == "gear":
            _check_gear(d, c, set(topology.loops))
        elif c.source.relation is not None:
            relation, joints = c.source.relation, c.source.joints
            parameters = c.record[12 * c.form.sides :].tolist()
            counted_by_relation(d, relation, joints, parameters, topology.loops, c.name)
    return tuple(constraints)


def by_follower(d: Description, joints: tuple[int, int], ratio: float) -> bool:
    """Of a gear between two joints that close loops, follower and leader, whether the follower is taken near zero.

    Else the leader is: the other one then makes whole turns, of which nothing is counted.
    """
    follower, leader = (d.kind_of(j) for j in joints)
    return bool(leader.angles) and ratio != 0.0 and (not follower.angles or abs(ratio) < 1.0)


def _check_gear(d: Description, c: Constraint, loops: set[int]) -> None:
    turning, ratio = all(d.kind_of(j).angles for j in c.source.joints), c.source.gear[0]
    if loops.issuperset(c.source.joints) and turning and not (_whole(ratio) or _whole(1.0 / ratio)):
        joint = d.joint_names[c.source.joints[0]]
        text = f"gear {c.name!r} joins two joints that close loops, whose turns nothing counts, by the ratio {ratio:g}"
        raise ModelError(f"{text}; cut another joint than {joint!r} in its loop", element=c.name)


def _whole(ratio: float) -> bool:
    return abs(ratio - round(ratio)) <= 1e-12 * abs(ratio)
