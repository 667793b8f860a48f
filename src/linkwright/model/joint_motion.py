"""Joints as their frames move: coordinates, rates and accelerations from poses, with their whole turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.model.body_motion import QUANTITIES, spread, steady_signs, turned, turned_back
from linkwright.model.coupling_relation import TURN, constant_changes, couplings, relation_of, whole_turns
from linkwright.model.description import Description
from linkwright.model.elements import Coupling
from linkwright.model.expression import numeric_values
from linkwright.model.joint_kinds import JointKind
from linkwright.model.topology import driven_coordinates, gear_order, initial_coordinates
from linkwright.spatial.algebra import cross, point_acceleration, point_velocity
from linkwright.spatial.rotation import euler_parameters, euler_parameters_matrix, quaternion_product

#: Values (T, n) near which an angle is, by joint and index; NaN where nothing says it.
References = dict[tuple[int, int], Floats]


def angle_references(
    d: Description,
    parameters: Mapping[str, Any],
    gears: Floats,
    time: Floats,
    measured: Callable[[int, Floats | None], Floats],
) -> References:
    """The references of the angles of n cases at T times.

    They are the laws of drivers at every time, initial values at the first one, and through gears what the other joint
    says: an angle, or a shift, which has no turns to be lost. Where nothing states either joint of a gear, the leader
    begins within half a turn, as it does in assembly (`accumulated_at_start`).

    `parameters` are numbers or (n,), `gears` (n, gears, 2) ratios and offsets; `measured` gives the first coordinate
    (T, n) of a joint near a reference.
    """
    shape = len(time), len(gears)
    references: References = {}
    with np.errstate(all="ignore"):  # what is not finite is no reference
        for key, value in initial_coordinates(d, parameters).items():
            references[key] = np.full(shape, np.nan)
            references[key][:1] = value
        for key, law in driven_coordinates(d, {**parameters, "TIME": time[:, None]}).items():
            references[key] = np.array(np.broadcast_to(law, shape), dtype=np.float64)
        known = {j for j, index in references if index == 0} | _by_shift(d)
        for k in gear_order(d, known):
            follower, leader = d.mimics[k].follower, d.mimics[k].leader
            ratio, offset = gears[:, k, 0], gears[:, k, 1]
            if follower in known and leader not in known and (ratio != 0.0).all():
                references[leader, 0] = (measured(follower, references.get((follower, 0))) - offset) / ratio
            elif follower not in known:
                references[follower, 0] = ratio * measured(leader, references.get((leader, 0))) + offset
            known |= {follower, leader}
        for coupling in couplings(d):
            _refer_by_relation(d, coupling, parameters, references, time, measured)
    return references


def _refer_by_relation(
    d: Description,
    coupling: Coupling,
    parameters: Mapping[str, Any],
    references: References,
    time: Floats,
    measured: Callable[[int, Floats | None], Floats],
) -> None:
    """Add, at the first time, the angle whose whole turns a coupling of joints' first coordinates tells."""
    relation, joints, numbers = relation_of(d, coupling)
    keys = [(joints[at], index) for at, index in relation.coordinates]
    loose = [k for k, turns in enumerate(relation.turning) if turns and keys[k] not in references]
    if not loose or not len(time) or any(index for _, index in keys):
        return
    p = [numeric_values(x, parameters) for x in numbers]
    changes = constant_changes(relation, [float(x.reshape(-1)[0]) for x in p])
    k = next((k for k in loose if changes[k]), None)
    if k is None:
        return
    coordinates = [measured(j, references.get((j, 0))) for j, _ in keys]
    references[keys[k]] = np.full_like(coordinates[k], np.nan)
    first = [x[0] for x in coordinates]
    references[keys[k]][0] = first[k] + TURN * whole_turns(relation, k, first, p, float(time[0]))


def near(angle: Floats, reference: Floats) -> Floats:
    """The angle of those that differ by whole turns that is nearest to a reference; itself where that is not finite."""
    with np.errstate(invalid="ignore"):
        turns = np.round((reference - angle) / TURN)
    return np.asarray(angle + TURN * np.where(np.isfinite(turns), turns, 0.0))


def _by_shift(d: Description) -> set[int]:
    """The geared joints whose coordinate a shift tells."""
    geared = {j for m in d.mimics for j in (m.follower, m.leader)}
    return {j for j in geared if 0 not in d.kind_of(j).angles or (d.kind_of(j).name == "screw" and d.pitch[j])}


#: Rates count turns where accelerations explain them to half a turn, and they lead to a tenth of a turn (rad).
EXPLAINED, REACHED = 0.5 * TURN, 0.1 * TURN


@dataclass(frozen=True, eq=False)
class FrameMotion:
    """The motion of bodies, or of frames on them, in ground's axes, components first: e (4, ...), the others (3, ...).

    The fields are in the order of `QUANTITIES`.
    """

    position: Floats
    e: Floats
    velocity: Floats
    omega: Floats
    acceleration: Floats
    alpha: Floats

    @classmethod
    def of(cls, quantity: Callable[[str], Floats]) -> FrameMotion:
        """The motion whose quantities `quantity` gives by their names."""
        return cls(*(quantity(name) for name in QUANTITIES))

    def at(self, r: Floats, p: Floats) -> FrameMotion:
        """The motion of frames fixed to these, by their rotations (3, 3, ...) and origins (3, ...) in their axes."""
        arm = turned(self.e, p)
        return FrameMotion(
            *_placed((self.position, self.e), r, arm),
            point_velocity(self.velocity, self.omega, arm),
            self.omega,
            point_acceleration(self.acceleration, self.alpha, self.omega, arm),
            self.alpha,
        )


#: The position of a body's or frame's origin (3, ...) and its Euler parameters (4, ...), in ground's axes.
Pose = tuple[Floats, Floats]


def _placed(body: Pose, r: Floats, arm: Floats) -> Pose:
    """The pose of a frame that is fixed to a body, by its rotation in the body's axes and its origin in ground's."""
    position, e = body
    return position + arm, quaternion_product(e, spread(euler_parameters(r), e))


def _between(i: Pose, j: Pose) -> tuple[Floats, Floats, Floats]:
    """From the origin of frame i to that of j in ground's axes; Euler parameters and origin of frame j in frame i."""
    arm = j[0] - i[0]
    back = i[1] * np.array([1.0, -1.0, -1.0, -1.0])[:, None, None]
    return arm, quaternion_product(back, j[1]), turned_back(i[1], arm)


def coordinates_at_start(
    kind: JointKind,
    ends: Sequence[Pose],
    frames: Sequence[tuple[Floats, Floats]],
    pitch: Floats,
    time: Floats,
    references: Mapping[int, Floats] = MappingProxyType({}),
) -> Floats:
    """(nq, 1, n): the coordinates of `relative_motion` at the first time, where bodies have the poses (..., 1, n)."""
    i, j = (_placed(end, r, turned(end[1], p)) for end, (r, p) in zip(ends, frames, strict=True))
    _, e, p = _between(i, j)
    q = np.array(kind.coordinates(e, p, np.broadcast_to(pitch, e.shape[1:])), dtype=np.float64)
    still = np.zeros_like(q)
    first = {k: reference[:1] for k, reference in references.items()}
    return _counted(kind, q, still, still, pitch, time[:1], first)


def relative_motion(
    kind: JointKind,
    ends: Sequence[FrameMotion],
    frames: Sequence[tuple[Floats, Floats]],
    pitch: Floats,
    time: Floats,
    references: Mapping[int, Floats] = MappingProxyType({}),
) -> tuple[Floats, Floats, Floats]:
    """(nq, T, n), (nv, T, n) and (nv, T, n): coordinates, rates and accelerations of n joints of one kind.

    `ends` are the bodies of both sides, `frames` the joints' frames on them: rotations (3, 3, n) and origins (3, n);
    `references` (T, n) of angles, by index, give their whole turns where they are finite.
    """
    i, j = (body.at(*frame) for body, frame in zip(ends, frames, strict=True))
    # The pose of frame j in frame i, and its relative twist in the axes of j.
    arm, e, p = _between((i.position, i.e), (j.position, j.e))
    twist = np.concatenate(
        [turned_back(j.e, j.velocity - i.velocity - cross(i.omega, arm)), turned_back(j.e, j.omega - i.omega)]
    )
    full = np.broadcast_to(pitch, e.shape[1:])
    terms = kind.terms_between(euler_parameters_matrix(e), p)
    v = np.einsum("ki...,k...->i...", _trailing(kind.dual(terms, full), twist.ndim - 1), twist)
    q = np.array(kind.coordinates(e, p, full), dtype=np.float64)
    # The twist changes by S a + Ṡ v.
    across, relative = j.velocity - i.velocity, j.omega - i.omega
    shifting = j.acceleration - i.acceleration - cross(i.alpha, arm)
    shifting = shifting - cross(i.omega, across) - cross(j.omega, across - cross(i.omega, arm))
    turning = j.alpha - i.alpha - cross(j.omega, relative)
    change = np.concatenate([turned_back(j.e, shifting), turned_back(j.e, turning)])
    change = change - _trailing(kind.subspace_rate(terms, full, v), twist.ndim - 1, 1)
    a = np.einsum("ki...,k...->i...", _trailing(kind.dual(terms, full), twist.ndim - 1), change)
    return _counted(kind, q, v, a, pitch, time, references), v, a


def _counted(
    kind: JointKind, q: Floats, v: Floats, a: Floats, pitch: Floats, time: Floats, references: Mapping[int, Floats]
) -> Floats:
    """Coordinates (nq, T, n) with the turns of angles, and Euler parameters of steady signs."""
    if kind.angles:
        known = pitch != 0.0 if kind.name == "screw" else np.zeros(len(pitch), bool)
        for k in kind.angles:
            q[k] = np.where(known, q[k], _accumulated(q[k], v[k], a[k], time, references.get(k)))
    if not kind.paired:
        q[-4:] *= np.where(q[-4:-3, :1] < 0.0, -1.0, 1.0)  # the first e0 is not negative
        steady_signs(np.moveaxis(q[-4:], 0, -1))
    return q


def _trailing(x: Any, axes: int, leading: int = 2) -> Any:
    """A matrix (6, nv) or a vector (6,), or one for every time and joint, with `axes` trailing axes."""
    x = np.asarray(x)
    return x.reshape(*x.shape, *(1,) * (axes - (x.ndim - leading)))


def _accumulated(angle: Floats, rate: Floats, acceleration: Floats, time: Floats, reference: Floats | None) -> Floats:
    """Angles (T, n) over whole turns: near the reference where there is one, else as they go on from the point before.

    Of all that differ by whole turns, an angle goes on to the one that rates and accelerations lead to.

    Two points tell the turns between them only if the motion is plain there: a rocker seen once in a turn of its crank
    has a rate, and goes nowhere. So the rates must change as the accelerations say, and the angle reached be near one
    that is possible; if not, the fewest turns are taken.
    """
    if not len(time):
        return angle
    step = np.diff(time)[:, None]
    before, after = acceleration[:-1], acceleration[1:]
    expected = step * (0.5 * (rate[1:] + rate[:-1]) + step * (before - after) / 12.0)
    unexplained = step * (np.diff(rate, axis=0) - 0.5 * step * (before + after))
    change = np.diff(angle, axis=0)
    missed = expected - change
    turns = np.round(missed / TURN)
    with np.errstate(invalid="ignore"):  # what is not finite is not plain
        plain = (np.abs(unexplained) < EXPLAINED) & (np.abs(missed - TURN * turns) < REACHED)
    turns = np.where(plain, turns, np.round(-change / TURN))
    turns = np.cumsum(np.where(np.isfinite(turns), turns, 0.0), axis=0)
    angle = np.concatenate([angle[:1], angle[1:] + TURN * turns])
    if reference is None:
        return angle
    return near(angle + near(angle[:1], reference[:1]) - angle[:1], reference)
