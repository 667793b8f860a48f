"""The constraint equations of a mechanism: what is joined to what, with its numbers, in the order of the file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from linkwright.base.locks import cached_property
from linkwright.base.types import Floats
from linkwright.constraints import forms
from linkwright.constraints.forms import Form
from linkwright.constraints.gear_rates import twist_units
from linkwright.errors import ModelError, NameNotFound
from linkwright.mechanism.description import GROUND, Description
from linkwright.mechanism.elements import Driver, PointOnLine, Rod
from linkwright.mechanism.expression import Expression
from linkwright.mechanism.kinds import KINDS
from linkwright.mechanism.lengths import body_lengths
from linkwright.spatial.rotation import euler_parameters_matrix

Group = Literal["joint", "tie", "gear", "driver", "rotor"]
#: Within this sine two h axes count as parallel: bodies are drawn roughly.
PARALLEL = 0.02


@dataclass(frozen=True, eq=False)
class Constraint:
    """One joint, tie, gear or driver: a form, the bodies of its frames (−1 is ground), its record and its law."""

    name: str
    group: Group
    form: Form
    bodies: tuple[int, ...]
    record: Floats  # rotation (9) and origin (3) of each frame, then the form's own numbers
    law: Expression | None = None

    def __str__(self) -> str:
        return f"{self.group} {self.name!r}"


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

    def equation(self, row: int) -> tuple[Constraint, str]:
        """The constraint that an equation belongs to, and what it is about."""
        k = int(np.searchsorted(self.first, row, side="right")) - 1
        return self.constraints[k], self.constraints[k].form.names[row - int(self.first[k])]

    @cached_property
    def drivers(self) -> tuple[int, ...]:
        return tuple(k for k, c in enumerate(self.constraints) if c.law is not None)

    @cached_property
    def structure(self) -> str:
        """A digest of what the equations are but for the mechanism's numbers: what joins which bodies, and the laws."""
        rows = [(c.group, c.form.key, c.form.names, c.bodies, len(c.record), repr(c.law)) for c in self.constraints]
        text = repr(("constraint equations", self.nb, list(self.description.parameters), rows))
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def sizes(self) -> Floats:
        """A length for each body, by which turns are weighed against shifts."""
        return body_lengths(self.description)

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
        lengths = np.array([flag for c in self.constraints for flag in c.form.lengths], dtype=bool)
        return np.where(lengths, 1.0, np.asarray(size, dtype=np.float64)[..., None])

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
                numbers = [float(d.pitch[j])] if kind.name == "screw" else []
                form, record = forms.joint(kind.name), self._of(j, numbers)
                yield Constraint(d.joint_names[j], "joint", form, self._joined(j), record)
        for m in d.mimics:
            a, b = m.follower, m.leader
            form = forms.gear(d.kind_of(a).name, d.kind_of(b).name)
            record = np.concatenate([self._of(a, []), self._of(b, []), [m.ratio, m.offset]])
            yield Constraint(m.name or d.joint_names[a], "gear", form, (*self._joined(a), *self._joined(b)), record)
        for tie in d.ties:
            if isinstance(tie, Rod):
                ends, form = (tie.first, tie.second), forms.ROD
                numbers = [float(tie.length.evaluate(d.parameters))]
            elif isinstance(tie, PointOnLine):
                ends, form, numbers = (tie.line, tie.point), forms.POINT_ON_LINE, []
            else:
                ends, form, numbers = (tie.plane, tie.point), forms.POINT_ON_PLANE, []
            yield self._at(tie.name, "tie", form, ends, numbers)
        for driver in d.drivers:
            yield self._driver(driver)

    def _driver(self, driver: Driver) -> Constraint:
        d = self.description
        if driver.kind == "joint":
            j = d.joint_names.position("joint", driver.target)
            form = forms.coordinate(d.kind_of(j).name, driver.index)
            return Constraint(driver.name, "driver", form, self._joined(j), self._of(j, []), driver.law)
        if driver.kind == "absolute":
            place, axis = driver.target.rsplit(".", 1)
            return self._at(driver.name, "driver", forms.absolute("xyz".index(axis)), (place,), [], driver.law)
        assert driver.other is not None
        ends = (driver.target, driver.other)
        if driver.kind == "distance":
            return self._at(driver.name, "driver", forms.DISTANCE, ends, [], driver.law)
        form = forms.angle(*driver.axes, about_h=self.drawn_parallel(driver))
        return self._at(driver.name, "driver", form, ends, [], driver.law)

    def drawn_parallel(self, driver: Driver) -> bool:
        """Whether the h axes of an angle driver are drawn parallel, and its axes across them."""
        if "h" in driver.axes:
            return False
        (r1, _), (r2, _) = (self.frame_as_drawn(x) for x in (driver.target, driver.other or ""))
        return float(np.linalg.norm(np.cross(r1[:, 2], r2[:, 2]))) < PARALLEL

    def frame_as_drawn(self, name: str) -> tuple[Floats, Floats]:
        """The axes and origin of a frame where its body is drawn."""
        body, r, p = frame(self.description, name)
        if body == GROUND:
            return r, p
        return self.start_r[body] @ r, self.start_p[body] + self.start_r[body] @ p

    def _joined(self, j: int) -> tuple[int, int]:
        return int(self.description.parent[j]), int(self.description.child[j])

    def _of(self, j: int, numbers: list[float]) -> Floats:
        d = self.description
        return np.concatenate([d.ri[j].reshape(-1), d.pi[j], d.rj[j].reshape(-1), d.pj[j], numbers])

    def _at(
        self,
        name: str,
        group: Group,
        form: Form,
        places: tuple[str, ...],
        numbers: list[float],
        law: Expression | None = None,
    ) -> Constraint:
        found = [frame(self.description, place) for place in places]
        record = np.concatenate([*(np.concatenate([r.reshape(-1), p]) for _, r, p in found), numbers])
        return Constraint(name, group, form, tuple(body for body, _, _ in found), record, law)


def frame(d: Description, name: str) -> tuple[int, Floats, Floats]:
    """The body, axes and origin of a body's own frame, of a further one, or of ground."""
    if name == d.ground_name:
        return GROUND, np.eye(3), np.zeros(3)
    body = d.body_names.find(name)
    if body is not None:
        return body, np.eye(3), np.zeros(3)
    k = d.frames.names.find(name)
    if k is None:
        raise NameNotFound("body or triad", name, [*d.body_names[:1000], *d.frames.names[:1000]])
    return int(d.frames.body[k]), d.frames.r[k], d.frames.p[k]


def joint_frames(d: Description, q: Floats, j: int) -> tuple[forms.Frame, forms.Frame]:
    """The two frames of a joint, in ground's axes, where the bodies are at the states q (nb, 7)."""

    def placed(body: int, r: Floats, p: Floats) -> forms.Frame:
        if body == GROUND:
            return r, p
        turn = euler_parameters_matrix(q[body, 3:])
        return turn @ r, q[body, :3] + turn @ p

    return placed(int(d.parent[j]), d.ri[j], d.pi[j]), placed(int(d.child[j]), d.rj[j], d.pj[j])


def drawn(d: Description) -> tuple[Floats, Floats]:
    """Rotations and origins of the bodies as drawn; those not placed stand as joints at rest put them on the others."""
    start = None if d.start is None else (d.start.r[None], d.start.p[None])
    r, p = drawn_rows(d, d.ri[None], d.pi[None], d.rj[None], d.pj[None], start)
    return r[0], p[0]


def drawn_rows(
    d: Description, ri: Floats, pi: Floats, rj: Floats, pj: Floats, start: tuple[Floats, Floats] | None
) -> tuple[Floats, Floats]:
    """(n, nb, 3, 3) and (n, nb, 3): `drawn` for n mechanisms that differ by these numbers, the cases first."""
    n = len(ri)
    r, p = np.tile(np.eye(3), (n, d.nb, 1, 1)), np.zeros((n, d.nb, 3))
    known = np.zeros(d.nb, bool)
    if d.start is not None and start is not None:
        known |= d.start.placed
        r[:, known], p[:, known] = start[0][:, known], start[1][:, known]
    if known.all():
        return r, p
    around: dict[int, list[int]] = {}
    for j in range(d.nj):
        for body in (int(d.parent[j]), int(d.child[j])):
            around.setdefault(body, []).append(j)
    # What is placed tells more of its neighbours than ground does, which many joints reach.
    queue = [*np.flatnonzero(known).tolist(), GROUND]
    ground = np.broadcast_to(np.eye(3), (n, 3, 3)), np.zeros((n, 3))
    for here in queue:  # grows while it is gone through
        rh, ph = ground if here == GROUND else (r[:, here], p[:, here])
        for j in around.get(here, ()):
            outward = int(d.parent[j]) == here
            there = int(d.child[j] if outward else d.parent[j])
            if there == GROUND or known[there]:
                continue
            kind = KINDS[d.kind_of(j).name]
            rest = kind.terms(kind.neutral(), d.pitch[j])
            turn = np.asarray(kind.rotation(rest).matrix(), float)
            shift = np.asarray(kind.shift(rest, d.pitch[j]), float)
            if outward:
                rn, pn, rf, pf = ri[:, j], pi[:, j], rj[:, j], pj[:, j]
            else:
                rn, pn, rf, pf, turn, shift = rj[:, j], pj[:, j], ri[:, j], pi[:, j], turn.T, -turn.T @ shift
            r[:, there] = rh @ rn @ turn @ rf.transpose(0, 2, 1)
            p[:, there] = ph + _turned(rh, pn + rn @ shift) - _turned(r[:, there], pf)
            known[there] = True
            queue.append(there)
    if not known.all():
        name = d.body_names[int(np.flatnonzero(~known)[0])]
        raise ModelError(f"no joint connects body {name!r} to ground; place it, or join it", element=name)
    return r, p


def _turned(r: Floats, p: Floats) -> Floats:
    return np.asarray((r @ p[:, :, None])[:, :, 0])
