"""A mechanism in the plane with one input: how all its bodies move per motion of the input, at given states and at the
states between these.

The motion is the null vector y of the constraints without the driver of the input, J y = 0: it exists where the input
is at rest, and at a toggle position of the input, where no rate of the input moves the mechanism. Between two states
the mechanism is where the constraints hold and a plane across the way from one to the other is met.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwright.analysis.scalar_search import root
from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.constraints.constraint_equations import joint_frames
from linkwright.constraints.kinematics import Kinematics
from linkwright.constraints.newton import moved_states
from linkwright.constraints.program_layout import shift_between
from linkwright.errors import LinkwrightError, NameNotFound
from linkwright.model.body_motion import place, turned
from linkwright.model.description import GROUND, Description
from linkwright.model.elements import Driver
from linkwright.model.expression import numeric_values
from linkwright.model.quantities import COORDINATES, POSITIONS, joint_index, turns
from linkwright.results.solution import Solution

#: Where the second-smallest singular value of the constraints is below this part of the largest, motion is not unique.
SINGULAR = 1e-7
#: Newton's method between states: rounds, and the part of the mechanism's size at which it ends.
ROUNDS, CLOSED = 12, 1e-13


@dataclass(frozen=True)
class Coordinate:
    """A coordinate of a joint, "rocker.angle", or of a point, "pen.x"; `joint` is −1 for a point."""

    name: str
    joint: int
    index: int
    body: int = GROUND
    arm: tuple[float, float, float] = (0.0, 0.0, 0.0)
    angular: bool = False


def coordinate(d: Description, text: str) -> Coordinate:
    """The coordinate of this name; of a joint with one coordinate its name is enough. Raises NameNotFound."""
    j = d.joint_names.find(text)
    if j is not None and len(COORDINATES.get(d.kind_of(j).name, ())) == 1:
        text = f"{text}.{COORDINATES[d.kind_of(j).name][0]}"
    head, _, word = text.rpartition(".")
    j = d.joint_names.find(head)
    if j is not None:
        kind = d.kind_of(j).name
        index = joint_index(kind, word, 0)
        if index is not None:
            return Coordinate(text, j, index, angular=turns(kind, index))
    elif word in POSITIONS and d.find_frame(head) is not None:
        at = place(d, head)
        return Coordinate(text, -1, POSITIONS.index(word), at.body, (at.p[0], at.p[1], at.p[2]))
    known = [f"{d.joint_names[k]}.{x}" for k in range(d.nj) for x in COORDINATES.get(d.kind_of(k).name, ())]
    raise NameNotFound("coordinate", text, known)


@dataclass(frozen=True, eq=False)
class States:
    """Poses (n, nb, 7) of the bodies and times (n,)."""

    q: Floats
    time: Floats


class LinkageMotion:
    """The motion of a planar mechanism per motion of its input, along a solution."""

    def __init__(self, solution: Solution, source: Coordinate, normal: Floats) -> None:
        self.description, self.input = solution.description, source
        self.solution = solution
        kinematics = Kinematics(solution.description)
        self.programs, self.equations = kinematics.programs, kinematics.equations
        self.normal = normal
        q = np.concatenate([solution.arrays["position"], solution.arrays["orientation"]], axis=-1)
        self.samples = States(np.ascontiguousarray(q), solution.time)
        e = self.equations
        d = self.description
        self.driver = _released(d, source)
        self._driven = None if self.driver is None else driven_coordinate(d, self.driver)
        driving = [k for k in e.drivers if self.driver is not None and e.constraints[k].name == self.driver.name]
        held = {row for k in driving for row in range(e.first[k], e.first[k + 1])}
        self.rows = [row for row in range(e.count) if row not in held]
        across = np.cross(normal, np.eye(3)[int(np.argmin(np.abs(normal)))])
        across /= np.linalg.norm(across)
        basis = np.zeros((6, 3))
        basis[:3, 0], basis[:3, 1], basis[3:, 2] = across, np.cross(normal, across), normal
        self._basis = basis

    @cached_property
    def _angles(self) -> Floats:
        """(n, turns): the accumulated angles of gears and screws at the samples."""
        count = int(self.equations.first_angle[-1])
        angles = np.zeros((len(self.samples.q), max(count, 1)))
        if count and len(angles):
            before = Kinematics(self.description).assemble(float(self.samples.time[0])).angles
            for k, q in enumerate(self.samples.q):
                before = self.programs.evaluate(q, before, float(self.samples.time[k])).angles
                angles[k] = before
        return angles

    def _jacobian(self, q: Floats, angles: Floats, t: Floats) -> tuple[Floats, Floats]:
        """J (n, rows, 3 nb) of motions in the plane, with unit rows, and Φ (n, rows) in the same scale."""
        e, n = self.equations, len(q)
        evaluation = self.programs.evaluate(q, angles, t)
        dense = self.programs.layout.dense(evaluation.jacobian, e.units)[:, self.rows]
        phi = evaluation.phi[:, self.rows]
        size = np.linalg.norm(dense, axis=-1)
        size = np.where(size > 0.0, size, 1.0)
        planar = (dense / size[..., None]).reshape(n, len(self.rows), e.nb, 6) @ self._basis
        return planar.reshape(n, len(self.rows), 3 * e.nb), phi / size

    def twists(self, q: Floats, angles: Floats, t: Floats) -> Floats:
        """(n, nb, 6): velocity of the origin and angular velocity of each body, of unit size together, at states q
        (n, nb, 7), each with the sign of the one before; NaN where the motion is not unique."""
        n, e = len(q), self.equations
        jacobian, _ = self._jacobian(q, angles, t)
        _, sizes, basis = np.linalg.svd(jacobian, full_matrices=True)
        wanted = 3 * e.nb - 1
        y = basis[:, -1].copy()
        if wanted:
            regular = sizes[:, wanted - 1] > SINGULAR * sizes[:, 0] if sizes.shape[1] >= wanted else np.zeros(n, bool)
            y[~regular] = np.nan
        unique = np.isfinite(y[:, 0])
        last = np.maximum.accumulate(np.where(unique, np.arange(n), 0))
        signs = np.sign(np.sum(y[last[1:]] * y[last[:-1]], axis=-1))
        signs = np.where(unique[1:] & unique[last[:-1]] & (signs != 0.0), signs, 1.0)
        y[1:] *= np.cumprod(signs)[:, None]
        return (y.reshape(n, e.nb, 3) @ self._basis.T) * e.units

    @property
    def samples_count(self) -> int:
        """How many samples there are."""
        return len(self.samples.q)

    @cached_property
    def motion(self) -> Floats:
        """(n, nb, 6): the twists at the samples; where the input moves first, it moves forwards."""
        twists = self.twists(self.samples.q, self._angles, self.samples.time)
        rates = self.rate(self.input, self.samples.q, twists)
        moving = np.flatnonzero(np.abs(rates) > 1e-9 * np.nanmax(np.abs(rates), initial=0.0))
        return -twists if len(moving) and rates[moving[0]] < 0.0 else twists

    # -- coordinates ----------------------------------------------------------------------------------------------
    def rate(self, x: Coordinate, q: Floats, twists: Floats) -> Floats:
        """(n,): how a coordinate changes with twists (n, nb, 6) at states (n, nb, 7)."""
        if x.joint < 0:
            return point_velocity(q, twists, x.body, self._point(x, q))[:, x.index]
        d = self.description
        (r, p), _ = joint_frames(d, q, x.joint)
        ends = int(d.child[x.joint]), int(d.parent[x.joint])
        if x.angular:
            omega = _of_body(twists, ends[0])[:, 3:] - _of_body(twists, ends[1])[:, 3:]
            return np.asarray(np.sum(omega * r[..., :, 2], axis=-1))
        column = x.index if d.kind_of(x.joint).name == "planar" else 2
        velocity = point_velocity(q, twists, ends[0], p) - point_velocity(q, twists, ends[1], p)
        return np.asarray(np.sum(velocity * r[..., :, column], axis=-1))

    def _point(self, x: Coordinate, q: Floats) -> Floats:
        arm = np.array(x.arm)
        if x.body == GROUND:
            return np.broadcast_to(arm, (len(q), 3))
        body = q[:, x.body]
        return np.asarray(body[:, :3] + turned(body[:, 3:].T, arm).T)

    def value(self, x: Coordinate, q: Floats, near: Floats | float) -> Floats:
        """(n,): a coordinate at states (n, nb, 7); of angles those near these."""
        if x.joint < 0:
            return self._point(x, q)[:, x.index]
        d = self.description
        (r, p), (r2, p2) = joint_frames(d, q, x.joint)
        if not x.angular:
            column = x.index if d.kind_of(x.joint).name == "planar" else 2
            return np.broadcast_to(np.sum((p2 - p) * r[..., :, column], axis=-1), (len(q),))
        first = r2[..., :, 0]
        angle = np.arctan2(np.sum(first * r[..., :, 1], axis=-1), np.sum(first * r[..., :, 0], axis=-1))
        return np.asarray(angle + 2 * np.pi * np.round((near - angle) / (2 * np.pi)))

    def series(self, x: Coordinate) -> Floats:
        """(n,): a coordinate at the samples, angles over whole turns."""
        if x.joint < 0:
            return self._point(x, self.samples.q)[:, x.index]
        return np.asarray(self.solution.joint(self.description.joint_names[x.joint])[:, x.index])

    # -- between samples ------------------------------------------------------------------------------------------
    def between(self, s: float, low: int) -> tuple[Floats, Floats]:
        """The state (1, nb, 7) and the twists (1, nb, 6) at s, a number of samples; the twists have the sign of the
        motion at sample `low`."""
        at = min(int(s), len(self.samples.q) - 2) if len(self.samples.q) > 1 else 0
        part = s - at
        q0, q1 = self.samples.q[at], self.samples.q[min(at + 1, len(self.samples.q) - 1)]
        way = shift_between(q0.T, q1.T).T
        q = moved_states(q0, part * way) if part else q0.copy()
        t = np.array([self.at(self.samples.time, s)])
        count = self._angles[at : at + 1]
        weighted = ((way / self.equations.units) @ self._basis).reshape(-1)
        length = float(np.linalg.norm(weighted))
        size = self.equations.size
        for _ in range(ROUNDS if length and part else 0):
            jacobian, phi = self._jacobian(q[None], count, t)
            gone = shift_between(q0.T, q.T).T
            off = ((gone - part * way) / self.equations.units @ self._basis).reshape(-1) @ weighted / length
            system = np.vstack([jacobian[0], weighted / length])
            step = np.linalg.lstsq(system, -np.append(phi[0], off), rcond=1e-11)[0]
            change = (step.reshape(-1, 3) @ self._basis.T) * self.equations.units
            q = moved_states(q, change)
            if np.abs(change[:, :3]).max() <= CLOSED * size and np.abs(change[:, 3:]).max() <= CLOSED:
                break
        twists = self.twists(q[None], count, t)
        reference = self.motion[low : low + 1]
        if np.sum(twists / self.equations.units * reference / self.equations.units) < 0.0:
            twists = -twists
        return q[None], twists

    def forwards(self, low: int, high: int) -> bool:
        """Whether the way from one sample to the next ones goes along the motion at the first."""
        way = shift_between(self.samples.q[low].T, self.samples.q[high].T).T / self.equations.units
        return bool(np.sum(way * self.motion[low] / self.equations.units) >= 0.0)

    @staticmethod
    def at(series: Floats, s: float) -> float:
        """A series (n,) at s, a number of samples, by a straight line."""
        return float(np.interp(s, np.arange(len(series)), series))

    def time_at(self, s: float, q: Floats) -> float:
        """The time (s) near s, a number of samples, at which the driver's law leads to the state q (1, nb, 7); without
        a driver, on the straight line between two samples."""
        if self.driver is None or self._driven is None or float(s).is_integer():
            return self.at(self.samples.time, s)
        driver, low = self.driver, int(s)
        there = float(self.value(self._driven, q, self.at(self.series(self._driven), s))[0])
        ends = self.samples.time[low], self.samples.time[low + 1]

        def beyond(t: float) -> float:
            names = {**self.description.parameters, "TIME": t}
            return float(numeric_values(driver.law, names)) - there

        if beyond(ends[0]) * beyond(ends[1]) >= 0.0:
            return self.at(self.samples.time, s)
        return root(beyond, *ends)


def point_velocity(q: Floats, twists: Floats, body: int, point: Floats) -> Floats:
    """(n, 3): the velocity of the point of a body that is at `point` (n, 3) or (3,)."""
    if body == GROUND:
        return np.zeros((len(q), 3))
    return np.asarray(twists[:, body, :3] + np.cross(twists[:, body, 3:], point - q[:, body, :3]))


def _of_body(twists: Floats, body: int) -> Floats:
    return np.zeros((len(twists), 6)) if body == GROUND else twists[:, body]


def driven_coordinate(d: Description, driver: Driver) -> Coordinate | None:
    """The coordinate that a driver prescribes; None of one between two frames."""
    if driver.kind == "joint":
        kind = d.kind_of(d.joint_names.position("joint", driver.target)).name
        return coordinate(d, f"{driver.target}.{COORDINATES[kind][driver.index]}")
    return coordinate(d, driver.target) if driver.kind == "absolute" else None


def _released(d: Description, source: Coordinate) -> Driver | None:
    """The driver that the input takes the place of: its own, or the only one."""
    matching = next((x for x in d.drivers if driven_coordinate(d, x) == source), None)
    if matching is None and len(d.drivers) > 1:
        names = ", ".join(repr(x.name) for x in d.drivers)
        text = f"{source.name} is driven by none of {names}; name a driven coordinate as the input, or leave one driver"
        raise LinkwrightError(text)
    return matching or next(iter(d.drivers), None)


def input_of(d: Description, name: str | None) -> Coordinate:
    """The input of this name, by default what the only driver prescribes."""
    if name is not None:
        return coordinate(d, name)
    driven = [x for x in (driven_coordinate(d, driver) for driver in d.drivers) if x is not None]
    if len(driven) == 1:
        return driven[0]
    some = "no driver of a coordinate" if not driven else "several drivers"
    example = driven[0].name if driven else d.joint_names[0]
    raise LinkwrightError(f"{d.name!r} has {some}; name the input, as in input={example!r}")
