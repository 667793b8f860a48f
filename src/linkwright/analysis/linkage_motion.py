"""A mechanism in the plane with one input: how all its bodies move per motion of the input, at given states and at the
states between these.

The motion is the null vector y of the constraints without the driver of the input, J y = 0: it exists where the input
is at rest, and at a toggle position of the input, where no rate of the input moves the mechanism. Between two states
the mechanism is where the constraints hold and a plane across the way from one to the other is met.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from linkwright.analysis.scalar_search import root
from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.constraints.constraint_equations import joint_frames
from linkwright.constraints.kinematics import Kinematics
from linkwright.constraints.newton import moved_states
from linkwright.constraints.program_layout import shift_between
from linkwright.errors import LinkwrightError, ModelError, NameNotFound
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
class Point:
    """A point of a body (−1 is ground), by its arm (m) in the body's axes."""

    body: int
    arm: tuple[float, float, float]


@dataclass(frozen=True)
class Coordinate:
    """A coordinate of a joint, "rocker.angle", of a point, "pen.x", or the distance between two points,
    "distance(foot, rod_end)"; `joint` is −1 for those of points."""

    name: str
    joint: int
    index: int
    points: tuple[Point, ...] = ()
    angular: bool = False


def coordinate(d: Description, text: str) -> Coordinate:
    """The coordinate of this name; of a joint with one coordinate its name is enough. Raises NameNotFound."""
    if not isinstance(text, str):
        raise ModelError(f"a coordinate is given by its name, not by {text!r}")
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
        return Coordinate(text, -1, POSITIONS.index(word), (_point_of(d, head),))
    places = [x.strip() for x in text.removeprefix("distance(").removesuffix(")").split(",")]
    if text.startswith("distance(") and len(places) == 2 and all(d.find_frame(x) is not None for x in places):
        return Coordinate(f"distance({', '.join(places)})", -1, 0, tuple(_point_of(d, x) for x in places))
    known = [f"{d.joint_names[k]}.{x}" for k in range(d.nj) for x in COORDINATES.get(d.kind_of(k).name, ())]
    raise NameNotFound("coordinate", text, known)


def _point_of(d: Description, name: str) -> Point:
    at = place(d, name)
    return Point(at.body, (float(at.p[0]), float(at.p[1]), float(at.p[2])))


@dataclass(frozen=True, eq=False)
class States:
    """Poses (n, nb, 7) of the bodies and times (n,)."""

    q: Floats
    time: Floats


class LinkageMotion:
    """The motion of a planar mechanism per motion of its input, along a solution.

    The mechanism is that of `d`, and the input takes the place of its own driver, or of the only one. A solution whose
    times are those of no law has `still`: the time (s) at which other drivers stand.
    """

    def __init__(
        self, d: Description, solution: Solution, source: Coordinate, normal: Floats, *, still: float | None = None
    ) -> None:
        self.description, self.solution, self.input, self.normal = d, solution, source, normal
        self.timed = still is None
        kinematics = Kinematics(d)
        self.programs, self.equations = kinematics.programs, kinematics.equations
        q = np.concatenate([solution.arrays["position"], solution.arrays["orientation"]], axis=-1)
        time = solution.time if still is None else np.full(len(solution), still)
        self.samples = States(np.ascontiguousarray(q), time)
        e = self.equations
        self.driver = _released(d, source)
        self._driven = None if self.driver is None else driven_coordinate(d, self.driver)
        driving = [k for k in e.drivers if self.driver is not None and e.constraints[k].name == self.driver.name]
        released = {row for k in driving for row in range(e.first[k], e.first[k + 1])}
        self.rows = [row for row in range(e.count) if row not in released]
        across = np.cross(normal, np.eye(3)[int(np.argmin(np.abs(normal)))])
        across /= np.linalg.norm(across)
        basis = np.zeros((6, 3))
        basis[:3, 0], basis[:3, 1], basis[3:, 2] = across, np.cross(normal, across), normal
        self._basis = basis

    @cached_property
    def angles(self) -> Floats:
        """(n, turns): the accumulated angles of gears and screws at the samples."""
        count = int(self.equations.first_angle[-1])
        angles = np.zeros((len(self.samples.q), max(count, 1)))
        if count and len(angles):
            before = Kinematics(self.description).assemble(float(self.samples.time[0])).angles
            for k, q in enumerate(self.samples.q):
                before = self.programs.evaluate(q, before, float(self.samples.time[k])).angles
                angles[k] = before
        return angles

    def _jacobian(self, q: Floats, angles: Floats, t: Floats, rows: list[int] | slice) -> tuple[Floats, Floats]:
        """J (n, rows, 3 nb) of motions in the plane, with unit rows, and Φ (n, rows) in the same scale."""
        e, n = self.equations, len(q)
        evaluation = self.programs.evaluate(q, angles, t)
        dense = self.programs.layout.dense(evaluation.jacobian, e.units)[:, rows]
        phi = evaluation.phi[:, rows]
        size = np.linalg.norm(dense, axis=-1)
        size = np.where(size > 0.0, size, 1.0)
        planar = (dense / size[..., None]).reshape(n, dense.shape[1], e.nb, 6) @ self._basis
        return planar.reshape(n, dense.shape[1], 3 * e.nb), phi / size

    def twists(self, q: Floats, angles: Floats, t: Floats) -> Floats:
        """(n, nb, 6): velocity of the origin and angular velocity of each body, of unit size together, at states q
        (n, nb, 7), each with the sign of the one before; NaN where the motion is not unique."""
        n, e = len(q), self.equations
        jacobian, _ = self._jacobian(q, angles, t, self.rows)
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
        twists = self.twists(self.samples.q, self.angles, self.samples.time)
        rates = self.rate(self.input, self.samples.q, twists)
        moving = np.flatnonzero(np.abs(rates) > 1e-9 * np.nanmax(np.abs(rates), initial=0.0))
        return -twists if len(moving) and rates[moving[0]] < 0.0 else twists

    # -- coordinates ----------------------------------------------------------------------------------------------
    def rate(self, x: Coordinate, q: Floats, twists: Floats) -> Floats:
        """(n,): how a coordinate changes with twists (n, nb, 6) at states (n, nb, 7)."""
        if x.joint < 0:
            velocities = [point_velocity(q, twists, at.body, self._point(at, q)) for at in x.points]
            if len(velocities) == 1:
                return velocities[0][:, x.index]
            way = self._point(x.points[1], q) - self._point(x.points[0], q)
            return np.asarray(np.sum(way * (velocities[1] - velocities[0]), axis=-1) / np.linalg.norm(way, axis=-1))
        d = self.description
        (r, p), _ = joint_frames(d, q, x.joint)
        ends = int(d.child[x.joint]), int(d.parent[x.joint])
        if x.angular:
            omega = _of_body(twists, ends[0])[:, 3:] - _of_body(twists, ends[1])[:, 3:]
            return np.asarray(np.sum(omega * r[..., :, 2], axis=-1))
        column = x.index if d.kind_of(x.joint).name == "planar" else 2
        velocity = point_velocity(q, twists, ends[0], p) - point_velocity(q, twists, ends[1], p)
        return np.asarray(np.sum(velocity * r[..., :, column], axis=-1))

    @staticmethod
    def _point(x: Point, q: Floats) -> Floats:
        arm = np.array(x.arm)
        if x.body == GROUND:
            return np.broadcast_to(arm, (len(q), 3))
        body = q[:, x.body]
        return np.asarray(body[:, :3] + turned(body[:, 3:].T, arm).T)

    def value(self, x: Coordinate, q: Floats, near: Floats | float) -> Floats:
        """(n,): a coordinate at states (n, nb, 7); of angles those near these."""
        if x.joint < 0:
            points = [self._point(at, q) for at in x.points]
            return points[0][:, x.index] if len(points) == 1 else np.linalg.norm(points[1] - points[0], axis=-1)
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
            return self.value(x, self.samples.q, 0.0)
        return np.asarray(self.solution.joint(self.description.joint_names[x.joint])[:, x.index])

    # -- between samples ------------------------------------------------------------------------------------------
    def between(self, s: float, low: int) -> tuple[Floats, Floats]:
        """The state (1, nb, 7) and the twists (1, nb, 6) at s, a number of samples; the twists have the sign of the
        motion at sample `low`."""
        at, part, q0, way = self._way(s)
        t, angles = np.array([self.at(self.samples.time, s)]), self.angles[at : at + 1]
        q = self.corrected(q0, part * way, angles, t)[0] if part and way.any() else q0
        twists = self.twists(q[None], angles, t)
        if np.sum(twists[0] * self.motion[low] / self.equations.units**2) < 0.0:
            twists = -twists
        return q[None], twists

    def _way(self, s: float) -> tuple[int, float, Floats, Floats]:
        """The sample before s, how far s is behind it, its state, and the way (nb, 6) to the next sample."""
        at = max(min(int(s), self.samples_count - 2), 0)
        q = self.samples.q
        return at, s - at, q[at], shift_between(q[at].T, q[min(at + 1, len(q) - 1)].T).T

    def corrected(self, q0: Floats, way: Floats, angles: Floats, t: Floats) -> tuple[Floats, bool]:
        """The state (nb, 7) that the constraints allow, in the plane across the end of a `way` (nb, 6) from the state
        q0; and whether Newton's method found it."""
        target = self._weighted(way)
        unit = target / np.linalg.norm(target)
        q = moved_states(q0, way)
        for _ in range(ROUNDS):
            jacobian, phi = self._jacobian(q[None], angles, t, self.rows)
            off = (self._weighted(shift_between(q0.T, q.T).T) - target) @ unit
            q, done = self._changed(q, np.vstack([jacobian[0], unit]), np.append(phi[0], off))
            if done:
                return q, True
        return q, False

    def state_at(self, s: float) -> Floats:
        """The state (1, nb, 7) at the time of s, a number of samples: where the drivers lead, also if the input turns
        back before the next sample. Without drivers, as `between`."""
        at, part, q0, way = self._way(s)
        if self.driver is None or not self.timed or not part:
            return self.between(s, at)[0]
        t, q = np.array([self.at(self.samples.time, s)]), moved_states(q0, part * way)
        for _ in range(ROUNDS):
            jacobian, phi = self._jacobian(q[None], self.angles[at : at + 1], t, slice(None))
            q, done = self._changed(q, jacobian[0], phi[0])
            if done:
                return q[None]
        return self.between(s, at)[0]

    def _weighted(self, shift: Floats) -> Floats:
        """(3 nb,): a shift (nb, 6) in the plane, turns as lengths."""
        return np.asarray((shift / self.equations.units @ self._basis).reshape(-1))

    def _changed(self, q: Floats, system: Floats, gaps: Floats) -> tuple[Floats, bool]:
        """A state after a step of Newton's method, and whether it was the last."""
        step = np.linalg.lstsq(system, -gaps, rcond=1e-11)[0]
        change = (step.reshape(-1, 3) @ self._basis.T) * self.equations.units
        size = np.array([self.equations.size] * 3 + [1.0] * 3)
        return moved_states(q, change), bool(np.all(np.abs(change) <= CLOSED * size))

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
        a driver, on the straight line between two samples; NaN if there is no time."""
        if not self.timed:
            return math.nan
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
    """The coordinate that a driver prescribes; None of an angle between two frames."""
    if driver.kind == "joint":
        kind = d.kind_of(d.joint_names.position("joint", driver.target)).name
        return coordinate(d, f"{driver.target}.{COORDINATES[kind][driver.index]}")
    if driver.kind == "distance":
        return coordinate(d, f"distance({driver.target}, {driver.other})")
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
    example = driven[0].name if driven else next((n for j, n in enumerate(d.joint_names) if d.kind_of(j).nv), "crank")
    raise LinkwrightError(f"{d.name!r} has {some}; name the input, as in input={example!r}")
